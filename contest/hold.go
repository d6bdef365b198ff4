package contest

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// holds reports whether this agent needs its own vote, and its voter still keeps a promise
// of an earlier process run (V5). To ask the others then would only keep their votes from
// a candidate that can lead at once. The vote of an agent that leaves helps to win but
// not to renew, so the hold must end within that lease.
func (c *Contest) holds(s *step) bool {
	held := s.HoldEnd()
	if s.now >= held {
		return false
	}
	soon := s.now >= held.Add(-c.cfg.holdOutlived())
	return !quorum.Confirmed(s.roster, func(id election.PeerID) bool {
		return id != c.cfg.Self.Peer && s.Reachable(id) && (soon || !s.StopsSoon(id))
	})
}

// wakeForHold advances the election when its hold no longer hinders it, or hinders it less.
func (c *Contest) wakeForHold(s *step) {
	held := s.HoldEnd()
	if soon := held.Add(-c.cfg.holdOutlived()); s.now < soon {
		s.wake(soon)
	}
	if s.now < held {
		s.wake(held)
	}
}
