package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// agenda is how many rounds of this agent's are under way, and which wait.
type agenda struct {
	queued     int  // would start a round if not so many were under way
	serving    bool // those that queue are having their turn
	contesting int  // have a round or a bid of this agent's under way
	window     int  // how many may have
	narrowedAt election.Instant
	turns      uint64 // given to those that queue
}

// A thousand elections at once would keep everybody too busy to answer any. How
// many rounds and bids of this agent's own may be under way follows what the
// voters can take, as a sender's window follows a network (Jacobson 1988,
// "Congestion Avoidance and Control"): it grows by one with each that was won and
// is halved when a vote came too late, once a vote timeout at most. A bid that gets
// no vote shows nothing: voters that promised the election to somebody keep it
// waiting. A round that others' rounds ask for is begun in its turn
// like any other.
const (
	minWindow   = 2
	firstWindow = 16
	maxWindow   = 256
)

// full reports whether the next round has to wait until one has ended.
func (a *agenda) full() bool { return a.contesting >= a.window }

// closed reports whether a round has to wait for its turn: one that begins, and one
// that begins again. Else two agents could each fill their windows for ever with
// rounds that wait for the other's.
func (a *agenda) closed() bool { return a.full() || a.queued > 0 && !a.serving }

// widen records that a bid was won.
func (a *agenda) widen() { a.window = min(a.window+1, maxWindow) }

// narrow records that a vote came too late.
func (a *agenda) narrow(now election.Instant, pause time.Duration) {
	if now >= a.narrowedAt.Add(pause) {
		a.window, a.narrowedAt = max(a.window/2, minWindow), now
	}
}

// touch has the election advanced in this step, or in the next if it was already.
func (c *entry) touch() { c.touched, c.refresh = true, true }

// touchAll has every election advanced in this step.
func (e *Elector) touchAll() {
	for _, c := range e.contests.rows {
		c.touch()
	}
}

// wake has the election advanced no later than at that instant.
func (c *entry) wake(at election.Instant) { c.wakeAt = min(c.wakeAt, at) }

// recount counts whether this agent has a round or a bid under way.
func (a *agenda) recount(c *entry) {
	if contests := c.Contests(); contests != c.counted {
		c.counted = contests
		a.contesting += sign(contests)
	}
}

// queue notes whether the election waits for its turn to start a round.
func (a *agenda) queue(c *entry, waits bool) {
	if waits && c.turn == 0 {
		a.turns++
		c.turn = a.turns
	}
	if c.queued != waits {
		c.queued = waits
		a.queued += sign(waits)
	}
}

// queued returns the elections that wait to start a round, whose turn it is first.
func (e *Elector) queued() []*entry {
	var waiting []*entry
	for _, c := range e.contests.rows {
		if c.queued {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(b, c *entry) int { return cmp.Compare(b.turn, c.turn) })
	return waiting
}

func sign(up bool) int {
	if up {
		return 1
	}
	return -1
}

// drop forgets an election.
func (e *Elector) drop(c *entry) {
	e.contests.remove(c.Name())
	e.agenda.queue(c, false)
	if c.counted {
		e.agenda.contesting--
	}
	e.shown = nil
}
