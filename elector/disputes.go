package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// outlived reports whether the term led can't be renewed any more: a new roster's
// floor rose above it, or there is no majority without voters that promised it, or
// a higher one, to somebody else. Who fell silent counts as lost once half the
// lease has gone by.
//
// A voter that is there and still disputes the term when any attempt it may have
// voted for has ended is reason enough: until the term is above what it promised,
// the majority lacks its vote, and the next voter that falls silent would end the
// leadership.
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

// dispute takes note that a voter can't renew the term led.
func (e *Elector) dispute(c *contest, voter election.PeerID) {
	if _, known := c.held.disputed[voter]; known || !e.roster.Has(voter) {
		return
	}
	if c.held.disputed == nil {
		c.held.disputed = map[election.PeerID]election.Instant{}
	}
	c.held.disputed[voter] = e.now
}

// withhold takes note that a voter does not renew all that is led here.
func (e *Elector) withhold(voter election.PeerID) {
	if e.withheld == nil {
		e.withheld = map[election.PeerID]bool{}
	}
	e.withheld[voter] = true
}
