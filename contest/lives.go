package contest

import (
	"cmp"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// An agent that dies and is back with its record goes on as the same holder. To others it looks
// as if it had paused and lost some answers. So the next life must know all that the former one
// may have sent or announced. That is its Authority, which Resume takes over.

// Authority is what this agent holds and has asked for. It is on record before anybody sees it
// (K1). A leadership of the roster election is not part of it (K8): the next life would not know what
// the former one had proposed as the driver, and would propose a second roster in the same term.
func (c *Contest) Authority() election.Authority {
	a := election.Authority{Election: c.name, Highest: c.asked.highest()}
	a.Low, a.Far = c.asked.wayBack()
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

// Resume takes over what the former life left on record. Without quorum the lease is nil. A bid
// is not continued, because it would count votes for sends that this life does not know (K4c).
func (c *Contest) Resume(a election.Authority, lease *quorum.Lease) {
	c.highest = max(c.highest, a.Term, cmp.Or(a.Low, a.Highest))
	c.asked = upTo(max(c.asked.highest(), a.Highest))
	if a.Low != 0 { // the former life went back from made-up terms, so this life too goes on above Low
		c.asked.spans = []span{{1, a.Low}, {a.Far, a.Highest}}
	}
	if a.Term == 0 {
		return
	}
	c.held = &tenure{term: a.Term, lease: lease, former: lease != nil}
	if lease != nil {
		c.held.word = c.newWording(a.Term, lease.Roster())
	}
	c.outdate(a.Term - 1)
	if a.Ending.Reason != "" {
		c.held.leaving = &departure{Ending: a.Ending}
		return
	}
	c.leader = Known{Holder: c.cfg.Self, Term: a.Term, Rank: c.rank(), Until: a.Until}
}

// Resumed is the first step after Resume. If a leadership was ending, it notifies the programs again:
// the former life may have died after the end was put on record and before the programs were notified.
func (c *Contest) Resumed(f Facts) Verdict {
	s := new(step).begin(c, f)
	if c.Role() == Leaving {
		c.withdraw(s)
		c.announce(s, election.Announcement{Event: election.NoLeader, Term: c.held.term, Reason: c.held.leaving.Reason})
	}
	return s.out
}

// Overtake makes a leader take a higher term at once. Either the programs that are to act now must
// not be given the present term (K4d), or that term was asked for with another lease (K4e).
func (c *Contest) Overtake() {
	if c.Role() == Leader {
		c.held.outworn = true
	}
}
