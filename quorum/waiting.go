package quorum

import (
	"cmp"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// maxWaiting bounds how many messages wait for one election, and how many wait about the roster.
const maxWaiting = 32

type received struct {
	from     election.PeerID
	election election.Name // of a message about the roster: empty
	message  election.Message
	at       election.Instant // when it was received
	keep     bool             // only for a reported roster: keep the former roster for Restore
}

// roster is the key under which messages about the roster wait. It sorts before every election.
const roster election.Name = ""

// order sorts waiting messages: vote requests by rank, the highest first (V3), after all other messages.
func order(a, b received) int {
	x, asks := a.message.(election.VoteRequest)
	y, too := b.message.(election.VoteRequest)
	switch {
	case asks && too:
		return cmp.Or(y.Rank.Compare(x.Rank), cmp.Compare(x.Holder.Lineage, y.Holder.Lineage))
	case asks:
		return 1
	case too:
		return -1
	}
	return 0
}

func (v *Voter) receive(now election.Instant, r received) {
	if v.blocked(now, r) {
		v.wait(now, r)
		return
	}
	v.handle(now, r)
}

// blocked reports whether the message must wait. It waits for a write (V1). A request without an
// objection also waits for the end of a promise to another holder (V3).
func (v *Voter) blocked(now election.Instant, r received) bool {
	switch m := r.message.(type) {
	case election.VoteRequest:
		return v.locked(m.Election) || v.keeps(m.Election) || v.promises[m.Election].toOther(now, m.Holder) && v.objection(r.from, m) == 0
	case election.Release:
		return v.locked(m.Election)
	case election.WordWrite:
		return v.locked(m.Election) || v.keeps(m.Election)
	}
	return !v.idle()
}

// locked reports whether the election must wait for a write, or for a message about the roster.
func (v *Voter) locked(e election.Name) bool {
	return v.Writing(e) || v.adopting != 0 || len(v.waiting[roster]) > 0
}

// keeps reports whether the election's word is being written.
func (v *Voter) keeps(e election.Name) bool { return v.keeping[e] != 0 }

func (v *Voter) idle() bool { return len(v.writing)+len(v.keeping) == 0 && v.adopting == 0 }

func (v *Voter) handle(now election.Instant, r received) {
	switch m := r.message.(type) {
	case election.VoteRequest:
		v.judge(now, r, m)
	case election.Release:
		v.release(m)
	case election.WordWrite:
		v.keep(r.from, m)
	case election.RosterPropose:
		v.propose(now, r.from, m)
	case election.Report:
		v.adopt(m.Roster, r.keep)
	}
}

func (v *Voter) wait(now election.Instant, r received) {
	e := r.election
	if _, writes := r.message.(election.WordWrite); writes {
		v.dropWrites(e)
	}
	n := len(v.waiting[e])
	full := n >= maxWaiting
	switch m := r.message.(type) {
	case election.Release:
		if _, onRecord := v.ledger.State().Grants[e]; !onRecord && n == 0 {
			return // there is nothing that the release could end
		}
	case election.VoteRequest:
		if full && !v.locked(e) {
			v.refuse(now, r.from, m, election.RefusedPromised)
		}
	}
	if full {
		return
	}
	i, _ := slices.BinarySearchFunc(v.waiting[e], r, func(other, r received) int {
		return cmp.Or(order(other, r), -1) // r goes behind messages of the same order
	})
	v.waiting[e] = slices.Insert(v.waiting[e], i, r)
}

// Tick handles messages that are not blocked any more, and refuses requests that have waited too long.
func (v *Voter) Tick(now election.Instant) {
	for _, e := range slices.Sorted(maps.Keys(v.waiting)) {
		v.retryOf(now, e)
	}
}

func (v *Voter) retryOf(now election.Instant, e election.Name) {
	for i := 0; i < len(v.waiting[e]); {
		r := v.waiting[e][i]
		m, asks := r.message.(election.VoteRequest)
		blocked := v.blocked(now, r)
		if blocked && (!asks || v.locked(e) || v.keeps(e) || now < r.at.Add(v.cfg.VoteTimeout())) {
			i++
			continue
		}
		v.setWaiting(e, slices.Delete(v.waiting[e], i, i+1))
		switch {
		case blocked:
			v.refuse(now, r.from, m, election.RefusedPromised)
		case asks && now > r.at.Add(v.cfg.VoteTimeout()): // a write took so long that the sender has given up or asked again
		default:
			v.handle(now, r)
		}
	}
}

func (v *Voter) setWaiting(e election.Name, waiting []received) {
	if len(waiting) == 0 {
		delete(v.waiting, e)
		return
	}
	v.waiting[e] = waiting
}

func (v *Voter) drop(e election.Name, h election.Holder, t election.Term) {
	v.dropOf(e, func(_ received, m election.VoteRequest) bool { return m.Holder == h && m.Term <= t })
}

func (v *Voter) dropOf(e election.Name, matches func(received, election.VoteRequest) bool) {
	v.setWaiting(e, slices.DeleteFunc(v.waiting[e], func(r received) bool {
		m, asks := r.message.(election.VoteRequest)
		return asks && matches(r, m)
	}))
}

func (v *Voter) dropRequests(matches func(received, election.VoteRequest) bool) {
	for e := range v.waiting {
		v.dropOf(e, matches)
	}
}

// Disconnected drops the requests of a peer. A promise to the peer stays (H7).
func (v *Voter) Disconnected(p election.PeerID) {
	v.dropRequests(func(r received, _ election.VoteRequest) bool { return r.from == p })
}

func (v *Voter) WakeAt() election.Instant {
	wake := election.Never
	for e, waiting := range v.waiting {
		if v.locked(e) || v.keeps(e) {
			continue // the end of the write wakes the agent
		}
		for _, r := range waiting {
			wake = min(wake, v.promises[e].until, r.at.Add(v.cfg.VoteTimeout()))
		}
	}
	return wake
}

func (v *Voter) Settle(now election.Instant) {
	durable := false
	for _, m := range []map[election.Name]uint64{v.writing, v.keeping} {
		maps.DeleteFunc(m, func(_ election.Name, generation uint64) bool {
			durable = durable || v.ledger.Durable(generation)
			return v.ledger.Durable(generation)
		})
	}
	if v.adopting != 0 && v.ledger.Durable(v.adopting) {
		v.adopting, v.roster = 0, v.ledger.State().Roster
		durable = true
	}
	if b := v.behind; b != nil && b.writing != 0 && v.ledger.Durable(b.writing) {
		b.done = true
	}
	if durable {
		v.Tick(now)
	}
}
