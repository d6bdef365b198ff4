package elector

import (
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// holds reports whether this agent needs its own vote, and its voter still keeps a promise
// of an earlier process run (V5). To ask the others then would only keep their votes from
// a candidate that can lead at once. The vote of an agent that leaves helps to win but
// not to renew, so the hold must end within that lease.
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

// heldUntil is when the hold lets this agent's voter vote for it.
func (e *Elector) heldUntil(c *contest) election.Instant {
	return e.voter.HoldEnd(c.name, e.cfg.Self)
}

// holdOutlived is how long a hold may last for a new lease to outlast it.
func (e *Elector) holdOutlived() time.Duration {
	return quorum.HolderLease(e.cfg.Timing.Lease, e.cfg.Drift) - 2*e.guard()
}

// wakeForHold advances the election when its hold no longer hinders it, or hinders it less.
func (e *Elector) wakeForHold(c *contest) {
	held := e.heldUntil(c)
	if soon := held.Add(-e.holdOutlived()); e.now < soon {
		c.wake(soon)
	}
	if e.now < held {
		c.wake(held)
	}
}
