package elector

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
func (e *Elector) outlived(c *contest) bool {
	switch {
	case c.held.term <= e.roster.Floor, c.bid != nil:
		return true
	case len(c.held.disputed) == 0, !e.hasMajority(), !e.writes():
		return false
	}
	if !quorum.Confirmed(e.roster, func(id election.PeerID) bool {
		_, disputes := c.held.disputed[id]
		return e.reachable(id) && !disputes
	}) {
		return true
	}
	due := c.held.lease.End().Add(-e.cfg.Timing.Lease / 2)
	for id, since := range c.held.disputed {
		if e.reachable(id) {
			due = min(due, since.Add(e.cfg.Timing.disputeTime()))
		}
	}
	if e.now < due {
		c.wake(due)
		return false
	}
	return true
}

// dispute records that a voter can't renew the term.
func (e *Elector) dispute(c *contest, voter election.PeerID) {
	if _, known := c.held.disputed[voter]; known || !e.roster.Has(voter) {
		return
	}
	if c.held.disputed == nil {
		c.held.disputed = map[election.PeerID]election.Instant{}
	}
	c.held.disputed[voter] = e.now
}

// withhold records that a voter does not renew everything that this agent leads.
func (e *Elector) withhold(voter election.PeerID) {
	if e.withheld == nil {
		e.withheld = map[election.PeerID]bool{}
	}
	e.withheld[voter] = true
}
