package quorum

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// maxQueued bounds what a voter keeps for one election: requests it can't
// grant yet, and messages that wait for a write.
const maxQueued = 32

// VoterConfig is what a voter does not change while it runs.
type VoterConfig struct {
	Self        election.PeerID
	Drift       float64
	Lease       time.Duration // that all agents agree on
	VoteTimeout time.Duration // how long a request that can't be granted yet is kept
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
	kept     map[election.Name][]request // can't be granted yet (V3)
	writing  map[election.Name]uint64    // generation of the grant being written
	queued   map[election.Name][]queued  // wait for that write
	held     []heldReply
	adoption uint64           // generation of the roster being written; 0: none
	keeps    *election.Roster // taken over with the former one kept
	proposed []queued         // roster messages that wait for votes to be written
	out      []election.Envelope
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
		kept:     map[election.Name][]request{},
		writing:  map[election.Name]uint64{},
		queued:   map[election.Name][]queued{},
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
	clear(v.kept)
	for e, waiting := range v.queued {
		v.queued[e] = slices.DeleteFunc(waiting, func(q queued) bool {
			_, asks := q.message.(election.VoteRequest)
			return asks
		})
	}
}

// Bar ends the promising for good: what was not sent yet never is, and what is
// being written is not waited for. Promises that were made still hold. Those who
// wait for a vote are told that there will be none.
func (v *Voter) Bar(now election.Instant) {
	v.barred = true
	v.held, v.out, v.proposed = nil, nil, nil
	clear(v.writing)
	v.adoption = 0
	kept, waiting := v.kept, v.queued
	v.kept, v.queued = map[election.Name][]request{}, map[election.Name][]queued{}
	for _, e := range sorted(kept) {
		for _, r := range kept[e] {
			v.refuse(now, r, election.RefusedUnavailable)
		}
	}
	for _, e := range sorted(waiting) {
		for _, q := range waiting[e] {
			if m, asks := q.message.(election.VoteRequest); asks {
				v.refuse(now, request{from: q.from, VoteRequest: m, since: q.since}, election.RefusedUnavailable)
			}
		}
	}
}

// Request handles a Vote Request from the peer that would be the holder.
func (v *Voter) Request(now election.Instant, from election.PeerID, r election.VoteRequest) {
	v.handleRequest(now, request{from: from, VoteRequest: r, since: now})
}

func (v *Voter) handleRequest(now election.Instant, r request) {
	if v.locked(r.Election) {
		v.queue(r.since, r.Election, r.from, r.VoteRequest)
		return
	}
	v.judge(now, r)
}

// judge applies V2 to V4 and R5 to a request, now.
func (v *Voter) judge(now election.Instant, r request) {
	g := v.ledger.State().Grant(r.Election)
	switch {
	case v.barred:
		v.refuse(now, r, election.RefusedUnavailable)
	case !v.roster.Has(v.cfg.Self):
		v.refuse(now, r, election.RefusedNotVoter)
	case v.roster.Version != r.Roster.Version || v.roster.Cluster != r.Roster.Cluster:
		v.refuse(now, r, election.RefusedVersion)
	case r.Election == election.RosterElection && !v.roster.Has(r.from):
		v.refuse(now, r, election.RefusedNotVoter) // its terms would stand in the way of the voters, who alone drive
	case r.Term <= v.roster.Floor:
		v.refuse(now, r, election.RefusedFloor)
	case r.Lease > v.cfg.Lease:
		v.refuse(now, r, election.RefusedLease) // the promise would hold off everybody else for longer than any agreed to
	case !r.Term.Follows(max(g.Term, v.roster.Floor)):
		v.refuse(now, r, election.RefusedLeap)
	case r.Term < g.Term, r.Term == g.Term && (r.Holder != g.Holder || g.Released):
		v.refuse(now, r, election.RefusedStaleTerm)
	case v.promisedToOther(now, r.Election, r.Holder):
		v.keep(now, r)
	case r.Term == g.Term && r.Lease <= g.Lease:
		v.extend(r.since, r.Election, r.Holder, g.Lease)
		v.out = append(v.out, v.grantOf(now, r))
	case v.ledger.Failing():
		v.refuse(now, r, election.RefusedUnavailable)
	default:
		v.grant(now, r)
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

// grant writes the promise; its reply is held until the write is durable (V4).
func (v *Voter) grant(now election.Instant, r request) {
	generation := v.ledger.Change(func(s *election.State) {
		s.Grants[r.Election] = raised(s.Grants[r.Election], r.Term, r.Holder, r.Lease)
	})
	v.drop(r.Election, r.Holder)
	v.extend(r.since, r.Election, r.Holder, r.Lease)
	v.writing[r.Election] = generation
	v.held = append(v.held, heldReply{generation: generation, Envelope: v.grantOf(now, r)})
	v.granted++
}

func (v *Voter) grantOf(now election.Instant, r request) election.Envelope {
	return election.Envelope{To: r.from, Message: election.VoteGrant{Election: r.Election, Term: r.Term,
		Holder: r.Holder, Send: r.Send, Version: v.roster.Version, Stamp: now}}
}

func (v *Voter) refuse(now election.Instant, r request, why election.RefusalReason) {
	v.refused++
	g := v.ledger.State().Grant(r.Election)
	refusal := election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder,
		Granted: g.Term, GrantedTo: g.Holder, Remaining: v.remaining(now, r.Election), Reason: why}
	if v.roster != nil && r.Roster.Cluster == v.roster.Cluster &&
		(r.Roster.Version.Before(v.roster.Version) || r.Roster.Floor < v.roster.Floor) {
		refusal.Roster = v.roster
	}
	v.out = append(v.out, election.Envelope{To: r.from, Message: refusal})
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

func (v *Voter) promisedToOther(now election.Instant, e election.Name, h election.Holder) bool {
	return v.promises[e].toOther(now, h)
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
		v.adoption == 0 && v.roster.Version == h.Version
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

// Release ends the promise of the term on record, for good (V7). One of an election
// of which nothing is on record or waits has nothing to end, and is not queued.
func (v *Voter) Release(now election.Instant, from election.PeerID, r election.Release) {
	if v.locked(r.Election) {
		_, onRecord := v.ledger.State().Grants[r.Election]
		if onRecord || len(v.kept[r.Election]) > 0 || len(v.queued[r.Election]) > 0 {
			v.queue(now, r.Election, from, r)
		}
		return
	}
	v.dropUpTo(r.Election, r.Holder, r.Term)
	g := v.ledger.State().Grant(r.Election)
	if g.Term != r.Term || g.Holder != r.Holder || g.Released {
		return
	}
	g.Released = true
	v.ledger.Note(func(s *election.State) { s.Grants[r.Election] = g })
	if v.promises[r.Election].holder == r.Holder {
		delete(v.promises, r.Election)
	}
	v.retry(now, r.Election)
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

// Standings returns the durable grants on record.
func (v *Voter) Standings(now election.Instant) []election.Standing {
	var standings []election.Standing
	for _, e := range v.ledger.State().Elections() {
		standings = append(standings, v.Standing(now, e)...)
	}
	return standings
}

// Standing returns the durable grant of one election; nothing if there is none.
func (v *Voter) Standing(now election.Instant, e election.Name) []election.Standing {
	g, onRecord := v.ledger.State().Grants[e]
	if _, writing := v.writing[e]; writing || !onRecord {
		return nil
	}
	s := election.Standing{Election: e, Term: g.Term, Holder: g.Holder}
	if !g.Released && v.promises[e].holder == g.Holder {
		s.Remaining = v.remaining(now, e)
	}
	return []election.Standing{s}
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
		return e == election.RosterElection || used(e) || v.locked(e) || len(v.kept[e]) > 0 || now < v.promises[e].until
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
