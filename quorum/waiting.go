package quorum

import (
	"cmp"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

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

// Disconnected drops the requests of a peer that can't take an answer, so that no
// vote goes to one that is gone while others wait for it. A promise it has stays
// (H7).
func (v *Voter) Disconnected(p election.PeerID) {
	for _, e := range sorted(v.kept) {
		v.setKept(e, slices.DeleteFunc(v.kept[e], func(r request) bool { return r.from == p }))
	}
	for _, e := range sorted(v.queued) {
		v.queued[e] = slices.DeleteFunc(v.queued[e], func(q queued) bool {
			_, asks := q.message.(election.VoteRequest)
			return asks && q.from == p
		})
	}
}

// Tick answers the kept requests whose time has come.
func (v *Voter) Tick(now election.Instant) {
	var due []election.Name
	for e, requests := range v.kept {
		if slices.ContainsFunc(requests, func(r request) bool { return !v.blocked(now, r) || v.expired(now, r) }) {
			due = append(due, e)
		}
	}
	slices.Sort(due)
	for _, e := range due {
		v.retry(now, e)
	}
}

// blocked reports whether the promise to another holder is in the request's way.
func (v *Voter) blocked(now election.Instant, r request) bool {
	return r.Term > v.ledger.State().Grant(r.Election).Term && v.promisedToOther(now, r.Election, r.Holder)
}

// expired reports whether the request was kept too long.
func (v *Voter) expired(now election.Instant, r request) bool {
	return now >= r.since.Add(v.cfg.VoteTimeout)
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
		blocked := v.blocked(now, r)
		if blocked && !v.expired(now, r) || v.locked(e) {
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
	for e, generation := range v.writing {
		if v.ledger.Durable(generation) {
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
					v.handleRequest(now, request{from: q.from, VoteRequest: m, since: q.since})
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
