package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A change of the voters is reported as done only once its outcome is committed. Before
// that this agent alone may hold it: if it is wiped, as removed voters are, the others
// would need its vote for ever.

// awaitsOutcome reports whether this agent has proposed the outcome of a change.
func (e *Elector) awaitsOutcome() bool {
	d := e.change.driver
	return d != nil && !d.Proposal().Joint()
}

// wonUnderPresent reports whether a majority that held the present roster granted the
// term: if that is stable, no ballot of an earlier one can be won any more.
func (e *Elector) wonUnderPresent(c *entry) bool {
	won := c.WonBy()
	return won != nil && won.Version == e.roster.Version
}

// committed reports whether the roster is known to be stable and committed, so that a
// former voter may be wiped. It asks the voters if that is not known.
func (e *Elector) committed() bool {
	ch := &e.change
	if e.roster.Joint() || ch.driver != nil {
		return false
	}
	if ch.agreed == e.roster.Version {
		return true
	}
	if quorum.Accepted(e.roster, func(id election.PeerID) bool {
		p := e.peers.get(id)
		return id == e.cfg.Self.Peer || p != nil && p.holds == e.roster.Version && !e.older(id)
	}) {
		ch.agreed = e.roster.Version
		return true
	}
	e.askVoters(e.roster)
	ch.wakeAt = min(ch.wakeAt, e.askRosterAt)
	return false
}

// finishWanted replies once the outcome is committed, or at the deadline.
func (e *Elector) finishWanted() {
	ch := &e.change
	if ch.want == nil {
		return
	}
	ended := e.changeEnded()
	if ended && ch.driver != nil {
		e.stopDriving() // the change may be another agent's
	}
	wanted, former := slices.Equal(e.roster.Voters, ch.want.voters), slices.Equal(e.roster.Voters, ch.want.former)
	switch {
	case ended && !wanted && !former:
		e.reply(ch.want.request, &election.Refusal{Why: election.DeniedOvertaken})
	case ended && e.committed() && wanted:
		e.reply(ch.want.request, nil)
	case ended && e.committed():
		e.reply(ch.want.request, e.whyUndone())
	case e.behindJoiner() != "":
		e.reply(ch.want.request, &election.Refusal{Why: election.DeniedBehind, Agent: e.behindJoiner()})
	case e.now >= ch.want.deadline:
		e.reply(ch.want.request, e.whyNotInTime())
	default:
		ch.wakeAt = min(ch.wakeAt, ch.want.deadline)
		return
	}
	ch.want, ch.lost = nil, nil
	if !e.roster.Joint() && ch.driver == nil {
		e.stopDriving()
	}
}

// changeEnded reports whether a change since then has ended, by whichever driver.
func (e *Elector) changeEnded() bool {
	ch := &e.change
	drives := ch.driver != nil && ch.driver.Ballot == e.roster.Version.Driver
	return !e.roster.Joint() && e.roster.Version != ch.want.of && !drives
}

// whyNotInTime says how far the wanted change has come.
func (e *Elector) whyNotInTime() *election.Refusal {
	if e.roster.Version != e.change.want.of || e.change.driver != nil {
		return &election.Refusal{Why: election.DeniedNotConfirmed, Change: e.changeStatus()}
	}
	why := election.Obstacle(0) // it was not elected
	if c := e.contests.get(election.RosterElection); c != nil {
		why = c.Unable(c)
	}
	return &election.Refusal{Why: election.DeniedNotStarted, Obstacle: why}
}

// whyUndone says why the voters are those from before.
func (e *Elector) whyUndone() *election.Refusal {
	if e.change.lost != nil {
		return e.change.lost
	}
	return &election.Refusal{Why: election.DeniedCancelled}
}
