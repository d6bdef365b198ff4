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
	serving    bool // it is the turn of the queued elections: they are being advanced in the queue's order
	contesting int  // elections in which a round or a bid of this agent is in progress
	window     int  // the limit for contesting, within which new rounds start
	narrowedAt election.Instant
	turns      uint64 // how many places in the queue have been given so far
}

// With a thousand rounds at once, all agents would be too busy to answer any. So a window bounds
// the rounds and bids in progress, like the window of a network connection (Jacobson 1988,
// "Congestion Avoidance and Control"). It grows by one with each bid that is won. It is halved
// when an answer comes too late or not at all, at most once in a vote timeout.
const (
	minWindow   = 2
	firstWindow = 16
	maxWindow   = 256
)

func (a *agenda) full() bool { return a.contesting >= a.window }

// closed reports whether a round that starts now, or starts again, has to wait in the queue. If such rounds did
// not wait, two agents could fill their windows with rounds that wait for each other and never end.
func (a *agenda) closed() bool { return a.full() || a.queued > 0 && !a.serving }

// widen records that a bid was won.
func (a *agenda) widen() { a.window = min(a.window+1, maxWindow) }

// narrow records that voters answered a bid too late, or not at all.
func (a *agenda) narrow(now election.Instant, pause time.Duration) {
	if now >= a.narrowedAt.Add(pause) {
		a.window, a.narrowedAt = max(a.window/2, minWindow), now
	}
}

// touch makes the election advance in this step, or in the next one if this step has advanced it already.
func (c *entry) touch() { c.touched, c.refresh, c.altered = true, true, true }

func (e *Elector) touchAll() {
	for _, c := range e.contests.rows {
		c.touch()
	}
}

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
	e.listening.named.remove(c.Name())
	e.agenda.queue(c, false)
	if c.counted {
		e.agenda.contesting--
	}
	e.lives.drop(c)
	e.shown = nil
}
