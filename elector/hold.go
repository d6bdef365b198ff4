package elector

import (
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// holds reports whether this agent needs its own vote and can't have it, because its
// voter holds what a former life promised (V5). To ask the others then would only
// keep their votes from a candidate that can lead at once. The vote of an agent that
// leaves makes a leader, and renews nothing: the hold must end within that lease.
func (e *Elector) holds(c *contest) bool {
	held := e.heldUntil(c)
	if e.now >= held {
		return false
	}
	soon := e.now >= held.Add(-e.holdOutlived())
	return !quorum.Confirmed(e.roster, func(id election.PeerID) bool {
		return id != e.cfg.Self.Peer && e.reachable(id) && (soon || !e.peers.get(id).leaving)
	})
}

// heldUntil is when this agent's voter may vote for it, as far as its hold goes.
func (e *Elector) heldUntil(c *contest) election.Instant {
	return e.voter.HoldEnd(c.name, e.cfg.Self)
}

// holdOutlived is how long a hold a new leadership outlives without a renewal.
func (e *Elector) holdOutlived() time.Duration {
	return quorum.HolderLease(e.cfg.Timing.Lease, e.cfg.Drift) - 2*e.guard()
}

// wakeForHold has the election advanced when its hold gets less of a hindrance.
func (e *Elector) wakeForHold(c *contest) {
	held := e.heldUntil(c)
	if soon := held.Add(-e.holdOutlived()); e.now < soon {
		c.wake(soon)
	}
	if e.now < held {
		c.wake(held)
	}
}
