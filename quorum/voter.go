package quorum

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// VoterConfig is what a voter does not change while it runs.
type VoterConfig struct {
	Self        election.PeerID
	Drift       float64
	Lease       time.Duration // that all agents agree on
	VoteTimeout time.Duration // how long a request that can't be granted yet waits
}

// Voter keeps one agent's promises, in all elections.
//
// Invariant: no reply leaves before the state it rests on is durable (V4), and
// while a grant of an election is being written no other message about that
// election is handled (V1).
type Voter struct {
	cfg      VoterConfig
	ledger   *Ledger
	roster   *election.Roster // the durable one; nil before genesis
	promises map[election.Name]promise
	writing  map[election.Name]uint64 // generation of the grant being written
	adopting uint64                   // generation of the roster being written; 0: none
	keeping  *election.Roster         // when it is adopted, the former one is kept
	waiting  []received               // in their order
	granted  uint64
	refused  uint64
	barred   bool // it promises nothing any more
}

// promise is the volatile half of a grant: until when nobody else is granted.
// Its holder may differ from the one on record after a roster election's term
// was raised, so it is kept by itself.
type promise struct {
	holder election.Holder
	until  election.Instant
	hold   bool // of a former life, and not renewed since (V5)
}

// NewVoter returns the voter of an agent that starts now with the ledger's
// state. Whatever its former life promised is held for as long as any lease
// granted may still run (V5).
func NewVoter(cfg VoterConfig, l *Ledger, now election.Instant) *Voter {
	v := &Voter{cfg: cfg, ledger: l, roster: l.State().Roster,
		promises: map[election.Name]promise{},
		writing:  map[election.Name]uint64{},
	}
	until := v.outlastsAll(now)
	for e, g := range l.State().Grants {
		if !g.Released {
			v.promises[e] = promise{holder: g.Holder, until: until, hold: true}
		}
	}
	return v
}

// outlastsAll is when every lease granted until now has ended on any clock.
func (v *Voter) outlastsAll(now election.Instant) election.Instant {
	longest := v.cfg.Lease
	for _, g := range v.ledger.State().Grants {
		longest = max(longest, g.Lease)
	}
	return now.Add(Outlast(longest, v.cfg.Drift))
}

// Suspended takes note that the host was suspended, which its clock may have
// counted as longer than it was: a promise would end while its holder may still
// act. As after a start, nobody knows how much of it is left, so it is held for as
// long as any lease granted may still run (V5). A promise that had ended before
// may be held once more, which costs time and no safety. Requests that wait are
// dropped like lost messages: what is promised to one counts from its receipt
// (V4), and that instant is as wrong.
func (v *Voter) Suspended(now election.Instant) {
	until := v.outlastsAll(now)
	for e, p := range v.promises {
		v.promises[e] = promise{holder: p.holder, until: max(p.until, until), hold: true}
	}
	v.dropRequests(func(received, election.VoteRequest) bool { return true })
}

// Bar ends the promising for good: what was not sent yet never is, and what is
// being written is not waited for. Promises that were made still hold. Whoever
// waits for a vote is refused.
func (v *Voter) Bar(now election.Instant) {
	v.barred = true
	v.ledger.Bar()
	clear(v.writing)
	v.adopting = 0
	waiting := v.waiting
	v.waiting = nil
	for _, r := range waiting {
		if m, asks := r.message.(election.VoteRequest); asks {
			v.refuse(now, r.from, m, election.RefusedUnavailable)
		}
	}
}

// Request handles a Vote Request from the peer that would be the holder. It
// replaces an earlier one.
func (v *Voter) Request(now election.Instant, from election.PeerID, m election.VoteRequest) {
	v.drop(m.Election, m.Holder, m.Term)
	v.receive(now, received{from: from, message: m, at: now})
}

// objection is why a request is refused whatever is promised (V2, R5); 0: nothing.
func (v *Voter) objection(from election.PeerID, r election.VoteRequest) election.RefusalReason {
	g := v.ledger.State().Grant(r.Election)
	switch {
	case v.barred:
		return election.RefusedUnavailable
	case !v.roster.Has(v.cfg.Self):
		return election.RefusedNotVoter
	case v.roster.Version != r.Roster.Version || v.roster.Cluster != r.Roster.Cluster:
		return election.RefusedVersion
	case r.Election == election.RosterElection && !v.roster.Has(from):
		return election.RefusedNotVoter // only voters drive: its terms would be in their way
	case r.Term <= v.roster.Floor:
		return election.RefusedFloor
	case r.Lease > v.cfg.Lease:
		return election.RefusedLease // others would have to wait for longer than was agreed
	case !r.Term.Follows(max(g.Term, v.roster.Floor)):
		return election.RefusedLeap
	case r.Term < g.Term, r.Term == g.Term && (r.Holder != g.Holder || g.Released):
		return election.RefusedStaleTerm
	}
	return 0
}

// judge answers a request that need not wait (V2 to V4).
func (v *Voter) judge(now election.Instant, r received, m election.VoteRequest) {
	g := v.ledger.State().Grant(m.Election)
	why := v.objection(r.from, m)
	switch {
	case why != 0:
		v.refuse(now, r.from, m, why)
	case m.Term == g.Term && m.Lease <= g.Lease:
		v.extend(r.at, m.Election, m.Holder, g.Lease)
		v.ledger.Send(v.grantOf(now, r.from, m))
	case v.ledger.Failing():
		v.refuse(now, r.from, m, election.RefusedUnavailable)
	default:
		v.grant(now, r, m)
	}
}

// raised is the record of a higher term, or of a longer lease. A lease on record
// is never shortened for the same holder, which may still act on the lower term
// (R8).
func raised(g election.Grant, t election.Term, h election.Holder, lease time.Duration) election.Grant {
	if g.Holder == h {
		lease = max(lease, g.Lease)
	}
	return election.Grant{Term: t, Holder: h, Lease: lease}
}

// grant writes the promise, and answers once that is durable (V4).
func (v *Voter) grant(now election.Instant, r received, m election.VoteRequest) {
	generation := v.ledger.Change(func(s *election.State) {
		s.Grants[m.Election] = raised(s.Grants[m.Election], m.Term, m.Holder, m.Lease)
	})
	v.extend(r.at, m.Election, m.Holder, m.Lease)
	v.writing[m.Election] = generation
	v.ledger.WhenDurable(generation, v.grantOf(now, r.from, m))
	v.granted++
}

func (v *Voter) grantOf(now election.Instant, to election.PeerID, m election.VoteRequest) election.Envelope {
	return election.Envelope{To: to, Message: election.VoteGrant{Election: m.Election, Term: m.Term,
		Holder: m.Holder, Send: m.Send, Version: v.roster.Version, Stamp: now}}
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

// extend promises for that long from the receipt of the request. One that was kept
// counts from there too: what it can earn counts from its send (H3), and a promise
// counted from the grant would outlive by the time it was kept a holder that has
// died meanwhile.
func (v *Voter) extend(receipt election.Instant, e election.Name, h election.Holder, l time.Duration) {
	v.promises[e] = v.promises[e].extended(receipt, h, l)
}

// extended never shortens a promise (V4).
func (p promise) extended(from election.Instant, h election.Holder, l time.Duration) promise {
	if p.holder != h {
		p = promise{holder: h}
	}
	p.until, p.hold = max(p.until, from.Add(l)), false
	return p
}

func (p promise) toOther(now election.Instant, h election.Holder) bool {
	return p.holder != h && now < p.until
}

func (v *Voter) remaining(now election.Instant, e election.Name) time.Duration {
	return min(max(0, v.promises[e].until.Sub(now)), Outlast(election.MaxLease, v.cfg.Drift))
}

// longest is what is left of the longest promise given in any election. What is
// held after a start is a promise like any other (R4).
func (v *Voter) longest(now election.Instant) time.Duration {
	var longest time.Duration
	for e := range v.promises {
		longest = max(longest, v.remaining(now, e))
	}
	return longest
}

// Renew extends the promises that a heartbeat claims and that are on record
// just so (V6), and returns the others. A nack changes nothing.
func (v *Voter) Renew(now election.Instant, from election.PeerID, h election.Heartbeat) []election.Nack {
	var nacks []election.Nack
	holder := election.Holder{Peer: from, Boot: h.Boot}
	current := !v.barred && v.roster.Has(v.cfg.Self) &&
		v.adopting == 0 && v.roster.Version == h.Version
	for _, c := range h.Claims {
		g := v.ledger.State().Grant(c.Election)
		p := v.promises[c.Election]
		_, writing := v.writing[c.Election]
		honoured := current && !writing && c.Term == g.Term && g.Holder == holder && !g.Released &&
			c.Term > v.roster.Floor && !p.toOther(now, holder)
		if !honoured {
			nacks = append(nacks, election.Nack{Election: c.Election, Term: g.Term})
			continue
		}
		v.promises[c.Election] = p.extended(now, holder, g.Lease)
	}
	return nacks
}

// Release ends the promise of the term on record, for good (V7).
func (v *Voter) Release(now election.Instant, from election.PeerID, m election.Release) {
	v.receive(now, received{from: from, message: m, at: now})
	v.retry(now)
}

func (v *Voter) release(m election.Release) {
	v.drop(m.Election, m.Holder, m.Term)
	g := v.ledger.State().Grant(m.Election)
	if g.Term != m.Term || g.Holder != m.Holder || g.Released {
		return
	}
	g.Released = true
	v.ledger.Note(func(s *election.State) { s.Grants[m.Election] = g })
	if v.promises[m.Election].holder == m.Holder {
		delete(v.promises, m.Election)
	}
}

// Roster returns the durable roster, nil before genesis.
func (v *Voter) Roster() *election.Roster { return v.roster }

// Counted returns how many votes were granted and refused since the start.
func (v *Voter) Counted() (granted, refused uint64) { return v.granted, v.refused }

// PromiseEnd is when the election's promise ends on this voter's clock; 0 if
// none runs.
func (v *Voter) PromiseEnd(e election.Name) election.Instant { return v.promises[e].until }

// HoldEnd is when the voter may vote for that holder, as far as what its former
// life promised to another goes, and that one has not renewed; 0 if it may.
func (v *Voter) HoldEnd(e election.Name, h election.Holder) election.Instant {
	if p := v.promises[e]; p.hold && p.holder != h {
		return p.until
	}
	return 0
}

// Records returns all durable grants.
func (v *Voter) Records(now election.Instant) []election.Record {
	var records []election.Record
	for _, e := range v.ledger.State().Elections() {
		records = append(records, v.Record(now, e)...)
	}
	return records
}

// Record returns the durable grant of one election; nothing if there is none.
func (v *Voter) Record(now election.Instant, e election.Name) []election.Record {
	g, onRecord := v.ledger.State().Grants[e]
	if _, writing := v.writing[e]; writing || !onRecord {
		return nil
	}
	s := election.Record{Election: e, Term: g.Term, Holder: g.Holder}
	if !g.Released && v.promises[e].holder == g.Holder {
		s.Remaining = v.remaining(now, e)
	}
	return []election.Record{s}
}

// Highest is the highest term this voter knows of any election (R1), those
// included that it has forgotten.
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

// Forget drops up to n grants of elections that nobody here uses, those of the
// lowest terms first, and returns how many. Only promises that are over are
// dropped; from then on every election not on record counts as granted up to
// the highest term dropped, so that no term starts again (G2).
func (v *Voter) Forget(now election.Instant, used func(election.Name) bool, n int) int {
	grants := v.ledger.State().Grants
	idle := slices.DeleteFunc(v.ledger.State().Elections(), func(e election.Name) bool {
		return e == election.RosterElection || used(e) || v.locked(e) || v.awaiting(e) > 0 || now < v.promises[e].until
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
