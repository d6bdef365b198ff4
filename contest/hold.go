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

// holdChanges is when its hold no longer hinders the election, or hinders it less; Never:
// there is none.
func (c *Contest) holdChanges(f Facts) election.Instant {
	now, held := f.Now(), f.HoldEnd()
	switch soon := held.Add(-c.cfg.holdOutlived()); {
	case now < soon:
		return soon
	case now < held:
		return held
	}
	return election.Never
}
