package elector

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Most steps are about a few of a thousand elections: what is to be looked at is
// kept in lists, so that a step costs what it does and not what is held.

// agenda is what is to be done about which elections.
type agenda struct {
	wakes      wakes      // those that want to be advanced at an instant
	touched    []*contest // something was heard or done about them
	untold     []*contest // readers may have to be told
	spare      []*contest // room for the next of either
	queued     int        // would start a round if not so many were under way
	serving    bool       // those that queue are having their turn
	contesting int        // have a round or an attempt of this agent's under way
	window     int        // how many may have
	narrowedAt election.Instant
	turns      uint64 // given to those that queue
}

// A thousand elections at once would keep everybody too busy to answer any. How
// many rounds and attempts of this agent's own may be under way follows what the
// voters can take, as a sender's window follows a network (Jacobson 1988,
// "Congestion Avoidance and Control"): it grows by one with each that was won and
// is halved when a vote came too late, once a vote timeout at most. An attempt that
// gets no vote says nothing: voters that promised the election to somebody keep it
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

// widen takes note that an attempt was won.
func (a *agenda) widen() { a.window = min(a.window+1, maxWindow) }

// narrow takes note that a vote came too late.
func (a *agenda) narrow(now election.Instant, pause time.Duration) {
	if now >= a.narrowedAt.Add(pause) {
		a.window, a.narrowedAt = max(a.window/2, minWindow), now
	}
}

// touch has the election advanced in this step, or in the next if it was already.
func (e *Elector) touch(c *contest) {
	if !c.touched {
		c.touched = true
		e.agenda.touched = append(e.agenda.touched, c)
	}
	e.markUntold(c)
}

// touchAll has every election advanced in this step.
func (e *Elector) touchAll() {
	for _, c := range e.contests.rows {
		e.touch(c)
	}
}

// markUntold notes that readers may have to be told something else of the election.
func (e *Elector) markUntold(c *contest) {
	if !c.untold {
		c.untold = true
		e.agenda.untold = append(e.agenda.untold, c)
	}
}

// take empties a list and returns what was in it, in room that putBack may give to
// the next.
func (a *agenda) take(list *[]*contest) []*contest {
	taken := *list
	*list, a.spare = a.spare[:0], nil
	return taken
}

func (a *agenda) putBack(list []*contest) {
	clear(list)
	a.spare = list
}

// due takes the elections to be advanced at that instant, sorted, so that equal
// inputs give equal outputs.
func (a *agenda) due(now election.Instant) []*contest {
	due := a.take(&a.touched)
	for _, c := range due {
		a.recount(c) // what was heard may have begun or ended a round
	}
	for len(a.wakes) > 0 && a.wakes[0].ringsAt <= now {
		c := a.wakes[0]
		if c.wakeAt > now && c.wakeAt != election.Never {
			c.ringsAt = c.wakeAt
			heap.Fix(&a.wakes, 0)
			continue
		}
		heap.Pop(&a.wakes)
		c.ringsAt = election.Never
		if c.wakeAt <= now && !c.touched {
			due = append(due, c)
		}
	}
	slices.SortFunc(due, func(b, c *contest) int { return cmp.Compare(b.name, c.name) })
	return due
}

// wake has the election advanced at that instant at the latest.
func (e *Elector) wake(c *contest, at election.Instant) {
	c.wakeAt = min(c.wakeAt, at)
	e.agenda.ring(c)
}

// ring sees to it that the alarm rings in time. Mostly it rings for a lease that
// was renewed since: it is only moved when it does.
func (a *agenda) ring(c *contest) {
	switch {
	case c.wakeAt >= c.ringsAt:
	case c.ringsAt == election.Never:
		c.ringsAt = c.wakeAt
		heap.Push(&a.wakes, c)
	default:
		c.ringsAt = c.wakeAt
		heap.Fix(&a.wakes, c.place)
	}
}

// settle takes note of what an election that was advanced does now.
func (a *agenda) settle(c *contest) {
	if !c.queued {
		c.turn = 0
	}
	a.recount(c)
}

// recount counts whether this agent has a round or an attempt under way.
func (a *agenda) recount(c *contest) {
	c.begun = c.begun && c.selection.Active()
	if contests := c.contested(); contests != c.counted {
		c.counted = contests
		a.contesting += sign(contests)
	}
}

// queue notes whether the election waits for its turn to start a round.
func (a *agenda) queue(c *contest, waits bool) {
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
func (e *Elector) queued() []*contest {
	var waiting []*contest
	for _, c := range e.contests.rows {
		if c.queued {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(b, c *contest) int { return cmp.Compare(b.turn, c.turn) })
	return waiting
}

func sign(up bool) int {
	if up {
		return 1
	}
	return -1
}

// drop forgets an election.
func (e *Elector) drop(c *contest) {
	if c.ringsAt != election.Never {
		heap.Remove(&e.agenda.wakes, c.place)
		c.ringsAt = election.Never
	}
	e.agenda.queue(c, false)
	if c.counted {
		e.agenda.contesting--
	}
	is := func(other *contest) bool { return other == c }
	e.agenda.touched = slices.DeleteFunc(e.agenda.touched, is)
	e.agenda.untold = slices.DeleteFunc(e.agenda.untold, is)
	e.shown = nil
}

// wakes is a heap of elections by their ringsAt, for container/heap. Each knows
// its place in it.
type wakes []*contest

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].ringsAt < w[j].ringsAt }
func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}
func (w *wakes) Push(c any) {
	c.(*contest).place = len(*w)
	*w = append(*w, c.(*contest))
}
func (w *wakes) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = nil
	*w = (*w)[:len(*w)-1]
	return last
}

func (w wakes) next() election.Instant {
	if len(w) == 0 {
		return election.Never
	}
	return w[0].ringsAt
}
