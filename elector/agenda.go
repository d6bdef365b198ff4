package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// agenda counts this agent's rounds in progress, and the elections that wait for their turn.
type agenda struct {
	queued     int  // elections that wait to start a round
	serving    bool // the queued elections are being advanced, in the order of the queue
	contesting int  // elections with a round or a bid of this agent in progress
	window     int  // how many elections may be contesting
	narrowedAt election.Instant
	turns      uint64 // queue positions given so far
}

// A thousand rounds at once would keep all agents too busy to answer any. So a window bounds
// the rounds and bids in progress, as in a network (Jacobson 1988, "Congestion Avoidance and
// Control"). It grows by one with each bid that is won, and is halved when a vote comes too
// late, at most once a vote timeout. A bid without any vote shows nothing: the voters may have
// promised the election to another agent.
const (
	minWindow   = 2
	firstWindow = 16
	maxWindow   = 256
)

func (a *agenda) full() bool { return a.contesting >= a.window }

// closed reports whether a round has to wait in the queue, even one that starts again. Otherwise
// two agents could fill their windows with rounds that wait for each other and never end.
func (a *agenda) closed() bool { return a.full() || a.queued > 0 && !a.serving }

// widen records that a bid was won.
func (a *agenda) widen() { a.window = min(a.window+1, maxWindow) }

// narrow records that a vote came too late.
func (a *agenda) narrow(now election.Instant, pause time.Duration) {
	if now >= a.narrowedAt.Add(pause) {
		a.window, a.narrowedAt = max(a.window/2, minWindow), now
	}
}

// touch has the election advanced in this step, or in the next one if it was advanced already.
func (c *entry) touch() { c.touched, c.refresh, c.altered = true, true, true }

func (e *Elector) touchAll() {
	for _, c := range e.contests.rows {
		c.touch()
	}
}

// wake has the election advanced no later than at that instant.
func (c *entry) wake(at election.Instant) { c.wakeAt = min(c.wakeAt, at) }

func (a *agenda) recount(c *entry) {
	if contests := c.Contests(); contests != c.counted {
		c.counted = contests
		a.contesting += sign(contests)
	}
}

// queue records whether the election waits for its turn to start a round.
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

// inTurn returns those of the elections that are in the queue, in its order.
func inTurn(all []*entry) []*entry {
	waiting := slices.DeleteFunc(slices.Clone(all), func(c *entry) bool { return !c.queued })
	slices.SortFunc(waiting, func(b, c *entry) int { return cmp.Compare(b.turn, c.turn) })
	return waiting
}

func sign(up bool) int {
	if up {
		return 1
	}
	return -1
}

func (e *Elector) drop(c *entry) {
	e.contests.remove(c.Name())
	e.agenda.queue(c, false)
	if c.counted {
		e.agenda.contesting--
	}
	e.lives.drop(c)
	e.shown = nil
}
