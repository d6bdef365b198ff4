package contest

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// An agent that dies and is back with its record goes on as the same holder. Seen from outside
// it paused, and lost some answers. So the next life must know all that the former one may
// have told anybody. That is its Authority, which Resume takes over.

// Authority is what this agent holds and has asked for. It is on record before anybody sees it
// (K1). It reveals nothing of a leadership of the roster election (K8): a driver that
// remembers nothing would propose a second roster in the term of its former life.
func (c *Contest) Authority() election.Authority {
	a := election.Authority{Election: c.name, Highest: c.asked.highest()}
	if c.name == election.RosterElection {
		return a
	}
	if c.candidate {
		a.Priority = max(c.priority, 0)
	}
	h := c.held
	if h == nil {
		return a
	}
	a.Term, a.Until = h.term, election.Never
	if h.lease != nil {
		a.Until = h.lease.End()
	}
	if d := h.leaving; d != nil {
		a.Until, a.Ending = d.StopBy, d.Ending
		if d.suspended {
			a.Ending.Reason = election.ReasonSuspended
		}
	}
	return a
}

// Resume takes over what the former life left on record. The lease is nil without quorum. A
// bid is not continued: it would count votes for sends that this life knows nothing of (K4c).
func (c *Contest) Resume(a election.Authority, lease *quorum.Lease) {
	c.highest = max(c.highest, a.Highest)
	c.asked = upTo(max(c.asked.highest(), a.Highest))
	if a.Term == 0 {
		return
	}
	c.held = &tenure{term: a.Term, lease: lease, former: lease != nil}
	c.outdate(a.Term - 1)
	if a.Ending.Reason != "" {
		c.held.leaving = &departure{Ending: a.Ending}
		return
	}
	c.leader = Known{Holder: c.cfg.Self, Term: a.Term, rank: c.rank(), Until: a.Until}
}

// Resumed is the first step after Resume. It withdraws an ending leadership again: the former
// life may have died between the record and the notice.
func (c *Contest) Resumed(f Facts) Verdict {
	s := new(step).begin(f)
	switch c.Role() {
	case Leader:
		c.Refresh(s.now)
	case Leaving:
		d := c.held.leaving
		c.withdraw(s)
		c.announce(s, election.Announcement{Event: election.NoLeader, Term: c.held.term, Reason: d.Reason})
	}
	return c.end(s)
}

// Overtake has a leader take a higher term at once: the present one may not be told to those
// that are to act now (K4d), or it was asked for with another lease (K4e).
func (c *Contest) Overtake(f Facts) Verdict {
	s := new(step).begin(f)
	if c.Role() == Leader {
		c.held.outworn = true
		s.out.Again = true
	}
	return c.end(s)
}
