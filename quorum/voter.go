package quorum

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Voter keeps the promises of one agent, in all elections.
//
// Invariant: while a grant of an election is being written, the voter handles no other message about that
// election (V1). While its word is being written, only renewals and releases of the election are handled.
type Voter struct {
	cfg      election.Config // the one with which the agent started; its lease counts if the roster sets none
	ledger   *Ledger
	roster   *election.Roster // the roster on disk; nil before genesis
	promises map[election.Name]promise
	writing  map[election.Name]uint64 // election → the generation of the grant that is being written
	keeping  map[election.Name]uint64 // election → the generation of the word that is being written
	behind   *catchUp
	adopting uint64                       // the generation of the roster that is being written; 0: none is
	waiting  map[election.Name][]received // election → the messages that wait, sorted by order
	granted  uint64
	refused  uint64
	barred   bool // the voter promises nothing any more
}

// promise is the part of a grant that is not on disk: until when no other holder gets a grant.
// The grant on record may name another holder: a driver's proposal may have replaced the grant (R1).
type promise struct {
	holder election.Holder
	until  election.Instant
	hold   bool // it is from a former process run or from before a suspend, and has not been renewed since (V5)
}

func NewVoter(cfg election.Config, l *Ledger, now election.Instant) *Voter {
	v := &Voter{cfg: cfg, ledger: l,
		promises: map[election.Name]promise{},
		writing:  map[election.Name]uint64{},
		keeping:  map[election.Name]uint64{},
		waiting:  map[election.Name][]received{},
	}
	if cfg.Quorum { // without quorum, a roster that is still on disk does not count
		v.roster = l.State().Roster
	}
	until := v.outlastsAll(now)
	for e, g := range l.State().Grants {
		if !g.Released {
			v.promises[e] = promise{holder: g.Holder, until: until, hold: true}
		}
	}
	return v
}

// agreed is the longest lease that a request may ask for now.
func (v *Voter) agreed() time.Duration { return cmp.Or(v.roster.Lease(), v.cfg.Lease) }

// outlastsAll is when every lease that was granted so far, and not released, has ended on any clock (V5). A
// renewal promises the roster's lease. That may be longer than the lease that the grant has on record (R14).
func (v *Voter) outlastsAll(now election.Instant) election.Instant {
	longest := v.agreed()
	for _, g := range v.ledger.State().Grants {
		if !g.Released { // nobody acts under a released term any more (V7)
			longest = max(longest, g.Lease)
		}
	}
	return now.Add(Outlast(longest, v.cfg.Drift))
}

// Suspended turns all promises into holds, as after a start (V5): the clock may have counted the suspend as
// too long. It drops waiting requests, because it is not known when they were received (V4).
func (v *Voter) Suspended(now election.Instant) {
	until := v.outlastsAll(now)
	for e, p := range v.promises {
		v.promises[e] = promise{holder: p.holder, until: max(p.until, until), hold: true}
	}
	v.dropRequests(func(received, election.VoteRequest) bool { return true })
}

// Bar ends voting until the next start. Promises that were already sent still bind.
func (v *Voter) Bar(now election.Instant) {
	v.barred = true
	v.ledger.Bar()
	clear(v.writing)
	clear(v.keeping)
	v.adopting = 0
	for _, e := range slices.Sorted(maps.Keys(v.waiting)) {
		for _, r := range v.waiting[e] {
			if m, asks := r.message.(election.VoteRequest); asks {
				v.refuse(now, r.from, m, election.RefusedUnavailable)
			}
		}
	}
	clear(v.waiting)
}

func (v *Voter) Request(now election.Instant, from election.PeerID, m election.VoteRequest) {
	v.drop(m.Election, m.Holder, m.Term)
	v.receive(now, received{from: from, election: m.Election, message: m, at: now})
}

// objection is why a request is refused at once, without regard to promises (V2, R5); 0: nothing is wrong.
func (v *Voter) objection(from election.PeerID, r election.VoteRequest) election.RefusalReason {
	g := v.ledger.State().Grant(r.Election)
	switch {
	case v.barred:
		return election.RefusedUnavailable
	case !v.roster.Has(v.cfg.Self.Peer):
		return election.RefusedNotVoter
	case v.roster.Version != r.Roster.Version || v.roster.Cluster != r.Roster.Cluster:
		return election.RefusedVersion
	case r.Election == election.RosterElection && !v.roster.Has(from):
		return election.RefusedNotVoter // only voters may drive a change
	case r.Term <= v.roster.Floor:
		return election.RefusedFloor
	case r.Lease > v.agreed():
		return election.RefusedLease // other holders would have to wait longer than the agreed lease
	case !v.roster.Allows(r.Election, r.Holder.Peer, r.Rank.Priority):
		return election.RefusedRight
	case !r.Term.Follows(max(g.Term, v.roster.Floor)):
		return election.RefusedLeap
	case r.Term < g.Term, r.Term == g.Term && (r.Holder != g.Holder || g.Released):
		return election.RefusedStaleTerm
	}
	return 0
}

func (v *Voter) judge(now election.Instant, r received, m election.VoteRequest) {
	g := v.ledger.State().Grant(m.Election)
	why := v.objection(r.from, m)
	switch {
	case why != 0:
		v.refuse(now, r.from, m, why)
	case m.Term == g.Term && m.Lease <= max(g.Lease, v.roster.Lease()): // nothing to write: both leases are on disk
		v.promises[m.Election] = v.promises[m.Election].extended(r.at, m.Holder, cmp.Or(v.roster.Lease(), g.Lease))
		v.ledger.Send(v.grantOf(now, r.from, m))
	case v.ledger.Failing():
		v.refuse(now, r.from, m, election.RefusedUnavailable)
	default:
		v.grant(now, r, m)
	}
}

// raised is a grant of a higher term or a longer lease. If the holder stays the same, its lease
// never gets shorter, because the holder may still act under the lower term (R8).
func raised(g election.Grant, t election.Term, h election.Holder, lease time.Duration) election.Grant {
	if g.Holder == h {
		lease = max(lease, g.Lease)
	}
	return election.Grant{Term: t, Holder: h, Lease: lease}
}

func (v *Voter) grant(now election.Instant, r received, m election.VoteRequest) {
	generation := v.ledger.Change(func(s *election.State) {
		s.Grants[m.Election] = raised(s.Grants[m.Election], m.Term, m.Holder, m.Lease)
	})
	v.promises[m.Election] = v.promises[m.Election].extended(r.at, m.Holder, m.Lease)
	v.writing[m.Election] = generation
	v.ledger.WhenDurable(generation, v.grantOf(now, r.from, m))
	v.granted++
}

func (v *Voter) grantOf(now election.Instant, to election.PeerID, m election.VoteRequest) election.Envelope {
	return election.Envelope{To: to, Message: election.VoteGrant{Election: m.Election, Term: m.Term,
		Holder: m.Holder, Send: m.Send, Version: v.roster.Version, Stamp: now, Word: v.ledger.Word(m.Election)}}
}

func (v *Voter) refuse(now election.Instant, to election.PeerID, m election.VoteRequest, why election.RefusalReason) {
	v.refused++
	g := v.ledger.State().Grant(m.Election)
	refusal := election.VoteRefusal{Election: m.Election, Term: m.Term, Holder: m.Holder,
		Granted: g.Term, GrantedTo: g.Holder, Remaining: v.remaining(now, m.Election), Reason: why}
	if v.roster != nil && m.Roster.Cluster == v.roster.Cluster &&
		(m.Roster.Version.Before(v.roster.Version) || m.Roster.Floor < v.roster.Floor) {
		refusal.Roster = v.roster
	}
	v.ledger.Send(election.Envelope{To: to, Message: refusal})
}

// extended returns the promise with a lease that counts from the receipt, even if the request
// has waited since then. The holder's lease counts from the send, so a longer promise would only
// delay others. The result never ends before the old promise to the same holder (V4).
func (p promise) extended(receipt election.Instant, h election.Holder, l time.Duration) promise {
	if p.holder != h {
		p = promise{holder: h}
	}
	p.until, p.hold = max(p.until, receipt.Add(l)), false
	return p
}

func (p promise) toOther(now election.Instant, h election.Holder) bool {
	return p.holder != h && now < p.until
}

func (v *Voter) remaining(now election.Instant, e election.Name) time.Duration {
	return min(max(0, v.promises[e].until.Sub(now)), Outlast(election.MaxLease, v.cfg.Drift))
}

// longest is how long the longest promise of any election still runs, holds included (R4).
func (v *Voter) longest(now election.Instant) time.Duration {
	var longest time.Duration
	for e := range v.promises {
		longest = max(longest, v.remaining(now, e))
	}
	return longest
}

// Renew extends the promises for claims that match the grants on record, and nacks the other claims (V6).
func (v *Voter) Renew(now election.Instant, from election.PeerID, h election.Heartbeat) []election.Nack {
	var nacks []election.Nack
	holder := election.Holder{Peer: from, Lineage: h.Lineage}
	current := !v.barred && v.roster.Has(v.cfg.Self.Peer) &&
		v.adopting == 0 && v.roster.Version == h.Version
	for _, c := range h.Claims {
		g := v.ledger.State().Grant(c.Election)
		p := v.promises[c.Election]
		honoured := current && !v.Writing(c.Election) && c.Term == g.Term && g.Holder == holder && !g.Released &&
			c.Term > v.roster.Floor && !p.toOther(now, holder) && v.roster.Allows(c.Election, from, 0)
		if !honoured {
			nacks = append(nacks, election.Nack{Election: c.Election, Term: g.Term})
			continue
		}
		v.promises[c.Election] = p.extended(now, holder, cmp.Or(v.roster.Lease(), g.Lease))
	}
	return nacks
}

// Release ends the term on record: no holder gets that term again (V7).
func (v *Voter) Release(now election.Instant, from election.PeerID, m election.Release) {
	v.receive(now, received{from: from, election: m.Election, message: m, at: now})
	v.Tick(now)
}

func (v *Voter) release(m election.Release) {
	v.drop(m.Election, m.Holder, m.Term)
	if g := v.ledger.State().Grant(m.Election); g.Term == m.Term && g.Holder == m.Holder && !g.Released {
		if v.promises[m.Election].holder == g.Holder {
			delete(v.promises, m.Election)
		}
		v.ledger.Note(func(s *election.State) {
			if w := v.ledger.Word(m.Election); m.Forget && w.Text == "" && w.Rank.Term == m.Term {
				v.ledger.DropWord(s, m.Election)
				s.Forgotten = max(s.Forgotten, m.Term)
				delete(s.Grants, m.Election)
				return
			}
			g.Released = true
			s.Grants[m.Election] = g
		})
	}
}

// Roster returns the roster on disk; nil before genesis.
func (v *Voter) Roster() *election.Roster { return v.roster }

func (v *Voter) Counted() (granted, refused uint64) { return v.granted, v.refused }

// PromiseEnd is when the election's promise ends; 0 if there is none.
func (v *Voter) PromiseEnd(e election.Name) election.Instant { return v.promises[e].until }

// HoldEnd is when the hold ends that keeps the holder h from getting a grant; 0 if no hold does.
func (v *Voter) HoldEnd(e election.Name, h election.Holder) election.Instant {
	if p := v.promises[e]; p.hold && p.holder != h {
		return p.until
	}
	return 0
}

func (v *Voter) Records(now election.Instant) []election.Record {
	var records []election.Record
	for _, e := range v.ledger.State().Elections() {
		records = append(records, v.Record(now, e)...)
	}
	return records
}

// Writing reports whether a grant of that election is being written. No Record shows it yet.
func (v *Voter) Writing(e election.Name) bool { return v.writing[e] != 0 }

func (v *Voter) Record(now election.Instant, e election.Name) []election.Record {
	g, onRecord := v.ledger.State().Grants[e]
	if v.Writing(e) || !onRecord {
		return nil
	}
	s := election.Record{Election: e, Term: g.Term, Holder: g.Holder}
	if !g.Released && v.promises[e].holder == g.Holder {
		s.Remaining = v.remaining(now, e)
	}
	return []election.Record{s}
}

// Highest is the highest term that this voter knows in any election, forgotten ones included (R1).
func (v *Voter) Highest() election.Term {
	highest := v.ledger.State().Forgotten
	if v.roster != nil {
		highest = max(highest, v.roster.Floor)
	}
	for _, g := range v.ledger.State().Grants {
		highest = max(highest, g.Term)
	}
	return highest
}

// Forget drops up to n expired grants of elections that are unused and have no word, those with the lowest
// terms first. It returns how many it dropped. From then on, in every election without a grant on record,
// all terms up to the highest dropped one count as granted. So no term is granted twice (G2).
func (v *Voter) Forget(now election.Instant, used func(election.Name) bool, n int) int {
	grants := v.ledger.State().Grants
	idle := slices.DeleteFunc(v.ledger.State().Elections(), func(e election.Name) bool {
		return e == election.RosterElection || used(e) || v.ledger.Word(e) != (election.Word{}) || v.locked(e) || len(v.waiting[e]) > 0 || now < v.promises[e].until
	})
	slices.SortStableFunc(idle, func(a, b election.Name) int { return cmp.Compare(grants[a].Term, grants[b].Term) })
	idle = idle[:min(n, len(idle))]
	if len(idle) == 0 {
		return 0
	}
	v.ledger.Note(func(s *election.State) {
		for _, e := range idle {
			s.Forgotten = max(s.Forgotten, s.Grants[e].Term)
			delete(s.Grants, e)
		}
	})
	for _, e := range idle {
		delete(v.promises, e)
	}
	return len(idle)
}
