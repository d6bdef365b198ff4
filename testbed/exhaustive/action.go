package exhaustive

import (
	"github.com/doyen-election/doyen/election"
)

// kind is what an action does.
type kind uint8

const (
	// What happens without a cause, in any order.
	deliver   kind = iota // a message arrives
	persisted             // a write succeeds
	wake                  // an agent that is due handles a Tick
	stopped               // a program that was asked to stop reports that it has
	pass                  // time passes until the next agent is due

	// Misfortunes. A path has a few of them.
	duplicate // a message arrives, and a copy stays under way
	lose      // a message is lost
	delay     // from now on a message may stay under way while time passes
	slow      // from now on a write may stay under way while time passes
	crash     // a process dies; the write under way is not on disk
	tornCrash // a process dies; the write under way is on disk
	pause     // a process stops for a while, and messages to it wait
	cut       // nothing that is sent to or from a host arrives any more
	sleep     // a lease passes in which no agent does anything
	resign    // the leader is asked to step down: no misfortune, but as rare
	fatal     // a message arrives, and the process dies once it has put its decision on record

	// What ends misfortunes, at any time.
	restart // a crashed process starts again, as another holder
	revive  // the next life of a crashed process begins, with its record
	resume  // a paused process goes on
	heal    // a cut ends
)

func (k kind) misfortune() bool { return k >= duplicate && k <= fatal }

// action is one thing that can happen, to the message or the agent at index which.
type action struct {
	kind  kind
	which uint8
	swap  bool // it happens before its turn
}

// actions appends everything that can happen now.
func (w *world) actions(bounds Bounds, to []action) []action {
	unlucky := int(w.spent) < bounds.Misfortunes
	still := true // nothing is left that must happen before time passes
	for i, f := range w.network {
		if w.agents[f.to].paused {
			continue
		}
		which := uint8(i)
		to = append(to, action{kind: deliver, which: which})
		still = still && f.late
		switch {
		case !unlucky:
			continue
		case bounds.Lives:
			if f.ofAuthority() && !f.late {
				to = append(to, action{kind: fatal, which: which}, action{kind: delay, which: which})
			}
			continue
		}
		if !f.late {
			to = append(to, action{kind: lose, which: which})
		}
		if f.ofAuthority() {
			to = append(to, action{kind: duplicate, which: which})
			if !f.late {
				to = append(to, action{kind: delay, which: which})
			}
		}
	}
	for i := range w.agents {
		to = w.agents[i].actions(uint8(i), unlucky, bounds.Lives, to)
		still = still && !w.agents[i].busy()
	}
	if still && w.untilDue(bounds.grain()) > 0 {
		to = append(to, action{kind: pass})
	}
	if unlucky && !bounds.Lives {
		to = append(to, action{kind: sleep})
	}
	if bounds.Swaps != AnyOrder {
		to = w.inTurn(bounds, to)
	}
	return to
}

// inTurn removes what would happen before its turn, except while swaps are left. Late messages,
// misfortunes and what ends them have no turn.
func (w *world) inTurn(bounds Bounds, all []action) []action {
	taken, kept := false, all[:0]
	for _, x := range all {
		if x.kind <= pass && (x.kind != deliver || !w.network[x.which].late) {
			x.swap, taken = taken, true
		}
		if !x.swap || int(w.swaps) < bounds.Swaps {
			kept = append(kept, x)
		}
	}
	return kept
}

// busy reports whether the agent must do something before time passes.
func (a *agent) busy() bool {
	return a.alive && !a.paused && (a.pending != nil && !a.slow || a.clock >= a.wake)
}

func (a *agent) actions(which uint8, unlucky, lives bool, to []action) []action {
	add := func(when bool, k kind) {
		if when {
			to = append(to, action{kind: k, which: which})
		}
	}
	running := a.alive && !a.paused
	add(!a.alive, restart)
	add(!a.alive && a.row.Highest > 0 && lives, revive)
	add(a.alive && a.paused, resume)
	add(a.cut, heal)
	add(running && a.pending != nil, persisted)
	add(running && a.clock >= a.wake, wake)
	add(running && a.owed != 0, stopped)
	if unlucky {
		add(a.alive, crash)
		add(a.alive && a.pending != nil, tornCrash)
		add(running && a.leading, resign)
	}
	if unlucky && !lives {
		add(running && a.pending != nil && !a.slow, slow)
		add(running, pause)
		add(!a.cut, cut)
	}
	return to
}

// untilDue is the true time until the first running agent is due, rounded up to the grain; 0 if
// no agent is ever due.
func (w *world) untilDue(grain election.Instant) election.Instant {
	var first election.Instant
	for i := range w.agents {
		a := &w.agents[i]
		if !a.alive || a.paused || a.wake == election.Never || a.wake <= a.clock {
			continue
		}
		perGrain := a.rate * grain / 10
		if d := (a.wake - a.clock + perGrain - 1) / perGrain * grain; first == 0 || d < first {
			first = d
		}
	}
	return first
}

// ofAuthority reports whether the message is about votes and leases. All others only begin and
// end rounds of selection: a late or repeated one has the same effect as another one in time.
func (f flight) ofAuthority() bool {
	switch f.message.(type) {
	case election.VoteRequest, election.VoteGrant, election.VoteRefusal, election.Release, election.Heartbeat, election.HeartbeatAck:
		return true
	}
	return false
}
