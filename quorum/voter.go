package quorum

import (
	"cmp"
	"maps"
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
	adoption uint64   // generation of the roster being written; 0: none
	proposed []queued // roster messages that wait for votes to be written
	out      []election.Envelope
	granted  uint64
	refused  uint64
}

// promise is the volatile half of a grant: until when nobody else is granted.
// Its holder may differ from the one on record after a roster election's term
// was raised, so it is kept by itself.
type promise struct {
	holder election.Holder
	until  election.Instant
}

type request struct {
	from election.PeerID
	election.VoteRequest
	since election.Instant
}

type queued struct {
	from    election.PeerID
	message election.Message
	since   election.Instant
}

type heldReply struct {
	generation uint64
	election.Envelope
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
	longest := cfg.Lease
	for _, g := range l.State().Grants {
		longest = max(longest, g.Lease)
	}
	for e, g := range l.State().Grants {
		if !g.Released {
			v.promises[e] = promise{holder: g.Holder, until: now.Add(Outlast(longest, cfg.Drift))}
		}
	}
	return v
}

// Request handles a Vote Request from the peer that would be the holder.
func (v *Voter) Request(now election.Instant, from election.PeerID, r election.VoteRequest) {
	if v.locked(r.Election) {
		v.queue(now, r.Election, from, r)
		return
	}
	v.judge(now, request{from: from, VoteRequest: r, since: now})
}

// judge applies V2 to V4 and R5 to a request, now.
func (v *Voter) judge(now election.Instant, r request) {
	g := v.ledger.State().Grants[r.Election]
	switch {
	case !v.roster.Has(v.cfg.Self):
		v.refuse(now, r, election.RefusedNotVoter)
	case v.roster.Version != r.Roster.Version || v.roster.Cluster != r.Roster.Cluster:
		v.refuse(now, r, election.RefusedVersion)
	case r.Term <= v.roster.Floor:
		v.refuse(now, r, election.RefusedFloor)
	case r.Term < g.Term, r.Term == g.Term && (r.Holder != g.Holder || g.Released):
		v.refuse(now, r, election.RefusedStaleTerm)
	case v.promisedToOther(now, r.Election, r.Holder):
		v.keep(now, r)
	case r.Term == g.Term:
		v.extend(now, r.Election, r.Holder, max(r.Lease, g.Lease))
		v.out = append(v.out, v.grantOf(now, r))
	case v.ledger.Failing():
		v.refuse(now, r, election.RefusedUnavailable)
	default:
		v.grant(now, r)
	}
}

// grant writes the promise; its reply is held until the write is durable (V4).
func (v *Voter) grant(now election.Instant, r request) {
	lease := r.Lease
	if g := v.ledger.State().Grants[r.Election]; g.Holder == r.Holder {
		lease = max(lease, g.Lease) // it may still act on the lower term's
	}
	generation := v.ledger.Change(func(s *election.State) {
		s.Grants[r.Election] = election.Grant{Term: r.Term, Holder: r.Holder, Lease: lease}
	})
	v.drop(r.Election, r.Holder)
	v.extend(now, r.Election, r.Holder, r.Lease)
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
	g := v.ledger.State().Grants[r.Election]
	refusal := election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder, Send: r.Send,
		Granted: g.Term, GrantedTo: g.Holder, Remaining: v.remaining(now, r.Election), Reason: why}
	if v.roster != nil && r.Roster.Cluster == v.roster.Cluster && r.Roster.Version.Before(v.roster.Version) {
		refusal.Roster = v.roster
	}
	v.out = append(v.out, election.Envelope{To: r.from, Message: refusal})
}

// keep holds a request back until the promise to another holder is over (V3).
// A holder's newer request replaces its older one.
func (v *Voter) keep(now election.Instant, r request) {
	v.drop(r.Election, r.Holder)
	if len(v.kept[r.Election]) >= maxQueued {
		v.refuse(now, r, election.RefusedPromised)
		return
	}
	r.since = now
	v.kept[r.Election] = append(v.kept[r.Election], r)
}

func (v *Voter) drop(e election.Name, h election.Holder) {
	v.setKept(e, slices.DeleteFunc(v.kept[e], func(r request) bool { return r.Holder == h }))
}

func (v *Voter) dropUpTo(e election.Name, h election.Holder, t election.Term) {
	v.setKept(e, slices.DeleteFunc(v.kept[e], func(r request) bool { return r.Holder == h && r.Term <= t }))
}

func (v *Voter) setKept(e election.Name, requests []request) {
	if len(requests) == 0 {
		delete(v.kept, e)
		return
	}
	v.kept[e] = requests
}

// extend never shortens a promise (V4).
func (v *Voter) extend(now election.Instant, e election.Name, h election.Holder, l time.Duration) {
	p := v.promises[e]
	if p.holder != h {
		p = promise{holder: h}
	}
	p.until = max(p.until, now.Add(l))
	v.promises[e] = p
}

func (v *Voter) promisedToOther(now election.Instant, e election.Name, h election.Holder) bool {
	p := v.promises[e]
	return p.holder != h && now < p.until
}

func (v *Voter) remaining(now election.Instant, e election.Name) time.Duration {
	return max(0, v.promises[e].until.Sub(now))
}

// Renew extends the promises that a heartbeat claims and that are on record
// just so (V6), and returns the others. A nack changes nothing.
func (v *Voter) Renew(now election.Instant, from election.PeerID, h election.Heartbeat) []election.Nack {
	var nacks []election.Nack
	holder := election.Holder{Peer: from, Boot: h.Boot}
	current := v.roster.Has(v.cfg.Self) && v.adoption == 0 && v.roster.Version == h.Version
	for _, c := range h.Claims {
		g := v.ledger.State().Grants[c.Election]
		_, writing := v.writing[c.Election]
		honoured := current && !writing && c.Term == g.Term && g.Holder == holder && !g.Released &&
			c.Term > v.roster.Floor && !v.promisedToOther(now, c.Election, holder)
		if !honoured {
			nacks = append(nacks, election.Nack{Election: c.Election, Term: g.Term})
			continue
		}
		v.extend(now, c.Election, holder, g.Lease)
	}
	return nacks
}

// Release ends the promise of the term on record, for good (V7).
func (v *Voter) Release(now election.Instant, from election.PeerID, r election.Release) {
	if v.locked(r.Election) {
		v.queue(now, r.Election, from, r)
		return
	}
	v.dropUpTo(r.Election, r.Holder, r.Term)
	g, ok := v.ledger.State().Grants[r.Election]
	if !ok || g.Term != r.Term || g.Holder != r.Holder || g.Released {
		return
	}
	g.Released = true
	v.ledger.Note(func(s *election.State) { s.Grants[r.Election] = g })
	if v.promises[r.Election].holder == r.Holder {
		delete(v.promises, r.Election)
	}
	v.retry(now, r.Election)
}

// Tick answers the kept requests whose time has come.
func (v *Voter) Tick(now election.Instant) {
	for _, e := range sorted(v.kept) {
		v.retry(now, e)
	}
}

// sorted returns the elections of a map in order, for nothing if it is empty,
// which it mostly is.
func sorted[T any](m map[election.Name]T) []election.Name {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// retry judges the kept requests of an election anew, the best-ranked first,
// once the promise in their way is over; and refuses those kept too long.
func (v *Voter) retry(now election.Instant, e election.Name) {
	if v.locked(e) {
		return
	}
	requests := slices.Clone(v.kept[e])
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(b.Rank.Compare(a.Rank), cmp.Compare(a.Holder.Boot, b.Holder.Boot))
	})
	for _, r := range requests {
		expired := now >= r.since.Add(v.cfg.VoteTimeout)
		blocked := r.Term > v.ledger.State().Grants[e].Term && v.promisedToOther(now, e, r.Holder)
		if blocked && !expired || v.locked(e) {
			continue
		}
		v.drop(e, r.Holder)
		if blocked {
			v.refuse(now, r, election.RefusedPromised)
			continue
		}
		v.judge(now, r)
	}
}

// WakeAt is when Tick has something to do.
func (v *Voter) WakeAt() election.Instant {
	wake := election.Never
	for e, requests := range v.kept {
		if v.locked(e) {
			continue // the write's completion wakes us
		}
		for _, r := range requests {
			wake = election.Earliest(wake, v.promises[e].until, r.since.Add(v.cfg.VoteTimeout))
		}
	}
	return wake
}

// Settle sends what waited for writes that are now durable, and handles what
// was queued behind them.
func (v *Voter) Settle(now election.Instant) {
	v.held = slices.DeleteFunc(v.held, func(h heldReply) bool {
		durable := v.ledger.Durable(h.generation)
		if durable {
			v.out = append(v.out, h.Envelope)
		}
		return durable
	})
	for _, e := range sorted(v.writing) {
		if v.ledger.Durable(v.writing[e]) {
			delete(v.writing, e)
		}
	}
	if v.adoption != 0 && v.ledger.Durable(v.adoption) {
		v.adoption, v.roster = 0, v.ledger.State().Roster
	}
	v.replay(now)
}

// replay handles queued messages in their order, roster messages first.
func (v *Voter) replay(now election.Instant) {
	for len(v.proposed) > 0 && v.idle() {
		q := v.proposed[0]
		v.proposed = v.proposed[1:]
		v.handleRoster(now, q)
	}
	for _, e := range sorted(v.queued) {
		for len(v.queued[e]) > 0 && !v.locked(e) {
			q := v.queued[e][0]
			v.queued[e] = v.queued[e][1:]
			switch m := q.message.(type) {
			case election.VoteRequest:
				if now < q.since.Add(v.cfg.VoteTimeout) { // else given up: the holder asks anew if not
					v.Request(now, q.from, m)
				}
			case election.Release:
				v.Release(now, q.from, m)
			}
		}
		if len(v.queued[e]) == 0 {
			delete(v.queued, e)
		}
		v.retry(now, e)
	}
}

// locked reports whether messages about the election must wait (V1). A roster
// message that waits for votes to be written goes before new votes.
func (v *Voter) locked(e election.Name) bool {
	_, writing := v.writing[e]
	return writing || v.adoption != 0 || len(v.proposed) > 0
}

// idle reports whether neither a vote nor a roster is being written.
func (v *Voter) idle() bool { return len(v.writing) == 0 && v.adoption == 0 }

// queue keeps a message until a write is durable. A holder's newer request
// replaces its older one.
func (v *Voter) queue(now election.Instant, e election.Name, from election.PeerID, m election.Message) {
	if _, ok := m.(election.VoteRequest); ok {
		v.queued[e] = slices.DeleteFunc(v.queued[e], func(q queued) bool {
			_, older := q.message.(election.VoteRequest)
			return older && q.from == from
		})
	}
	if len(v.queued[e]) < maxQueued {
		v.queued[e] = append(v.queued[e], queued{from: from, message: m, since: now})
	}
}

// Take returns the replies that may leave now.
func (v *Voter) Take() []election.Envelope {
	out := v.out
	v.out = nil
	return out
}

// Roster returns the durable roster, nil before genesis.
func (v *Voter) Roster() *election.Roster { return v.roster }

// Counted returns how many votes were granted and refused since the start.
func (v *Voter) Counted() (granted, refused uint64) { return v.granted, v.refused }

// PromiseEnd is when the election's promise ends on this voter's clock; 0 if
// none runs.
func (v *Voter) PromiseEnd(e election.Name) election.Instant { return v.promises[e].until }

// Standings returns the durable grants on record.
func (v *Voter) Standings(now election.Instant) []election.Standing {
	var standings []election.Standing
	for _, e := range v.ledger.State().Elections() {
		if _, writing := v.writing[e]; writing {
			continue
		}
		g := v.ledger.State().Grants[e]
		s := election.Standing{Election: e, Term: g.Term, Holder: g.Holder}
		if !g.Released && v.promises[e].holder == g.Holder {
			s.Remaining = v.remaining(now, e)
		}
		standings = append(standings, s)
	}
	return standings
}

// Highest is the highest term this voter knows of any election (R1).
func (v *Voter) Highest() election.Term {
	var highest election.Term
	if v.roster != nil {
		highest = v.roster.Floor
	}
	for _, g := range v.ledger.State().Grants {
		highest = max(highest, g.Term)
	}
	return highest
}
