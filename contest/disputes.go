package contest

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// outlived reports whether this leader needs a higher term: a new roster's floor rose above
// its own, or no majority is left without the voters that dispute it, which have granted
// this term or a higher one to another holder. A silent voter counts as lost after half
// the lease.
//
// One reachable voter that still disputes the term after any other bid must have ended is
// reason enough: without its vote, the next voter that falls silent may end the leadership.
func (c *Contest) outlived(s *step) bool {
	switch {
	case c.held.term <= s.roster.Floor, c.bid != nil:
		return true
	case len(c.held.disputed) == 0, !s.hasMajority(), !s.Writes():
		return false
	}
	if !quorum.Confirmed(s.roster, func(id election.PeerID) bool {
		_, disputes := c.held.disputed[id]
		return s.Reachable(id) && !disputes
	}) {
		return true
	}
	due := c.held.lease.End().Add(-c.cfg.Lease / 2)
	for id, since := range c.held.disputed {
		if s.Reachable(id) {
			due = min(due, since.Add(c.cfg.disputeTime()))
		}
	}
	if s.now < due {
		s.wake(due)
		return false
	}
	return true
}

// dispute records that a voter can't renew the term.
func (c *Contest) dispute(s *step, voter election.PeerID) {
	if _, known := c.held.disputed[voter]; known || !s.roster.Has(voter) {
		return
	}
	if c.held.disputed == nil {
		c.held.disputed = map[election.PeerID]election.Instant{}
	}
	c.held.disputed[voter] = s.now
}
