package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A change of the voters is reported as done only once its outcome is committed. Before that,
// perhaps only this agent has the outcome: if it is wiped, the others wait for its vote.

// awaitsOutcome reports whether this agent has proposed the outcome of a change.
func (e *Elector) awaitsOutcome() bool {
	d := e.change.driver
	return d != nil && !d.Proposal().Joint()
}

// wonUnderPresent reports whether a majority that held the present roster granted the term. If
// that roster is stable, no ballot of an earlier one can be won any more.
func (e *Elector) wonUnderPresent(c *entry) bool {
	won := c.WonBy()
	return won != nil && won.Version == e.roster.Version
}

// committed reports whether the roster is known to be stable and committed, so that a former
// voter may be wiped. If that is not known, it asks the voters.
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
	wanted, former := e.roster.SameContent(ch.want.goal), e.roster.SameContent(ch.want.former)
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

// changeEnded reports whether a change has ended since want was made, whichever agent drove it.
func (e *Elector) changeEnded() bool {
	ch := &e.change
	drives := ch.driver != nil && ch.driver.Ballot == e.roster.Version.Driver
	return !e.roster.Joint() && e.roster.Version != ch.want.of && !drives
}

func (e *Elector) whyNotInTime() *election.Refusal {
	if e.roster.Version != e.change.want.of || e.change.driver != nil {
		return &election.Refusal{Why: election.DeniedNotConfirmed, Change: e.changeStatus()}
	}
	why := election.Obstacle(0) // this agent was not elected
	if c := e.contests.get(election.RosterElection); c != nil {
		why = c.Unable(c)
	}
	return &election.Refusal{Why: election.DeniedNotStarted, Obstacle: why}
}

func (e *Elector) whyUndone() *election.Refusal {
	if e.change.lost != nil {
		return e.change.lost
	}
	return &election.Refusal{Why: election.DeniedCancelled}
}

// wantedCancel is a command to go back from a change. If another agent drives the change,
// that agent is asked until the change has ended.
type wantedCancel struct {
	former   []election.Voter
	request  election.RequestID
	deadline election.Instant
	resendAt election.Instant
}

// cancelChange starts to undo a change. The reply follows once the former voters decide alone.
func (e *Elector) cancelChange(id election.RequestID) *election.Refusal {
	if refusal := e.noRosterToChange(); refusal != nil {
		return refusal
	}
	ch := &e.change
	switch {
	case ch.cancel != nil:
		return &election.Refusal{Why: election.DeniedCancelling}
	case ch.driver != nil && !ch.driver.GoBack():
		return &election.Refusal{Why: election.DeniedChangeSent}
	case ch.driver == nil && !e.roster.Joint() && ch.want == nil:
		return &election.Refusal{Why: election.DeniedNoChange}
	case ch.driver == nil && !e.roster.Joint() && e.roster.Version != ch.want.of:
		return &election.Refusal{Why: election.DeniedChangeEnded}
	case ch.driver == nil && !e.roster.Joint(): // asked for at this agent, and not started
		e.reply(ch.want.request, &election.Refusal{Why: election.DeniedCancelled})
		ch.want = nil
		e.reply(id, nil)
		return nil
	}
	ch.cancel = &wantedCancel{former: e.roster.Voters, request: id, resendAt: e.now,
		deadline: e.now.Add(5*e.cfg.Timing.Lease + 5*time.Second)}
	return nil
}

// finishCancel replies once the outcome is committed, or at the deadline.
func (e *Elector) finishCancel() {
	ch := &e.change
	switch {
	case ch.cancel == nil:
		return
	case e.committed() && slices.Equal(e.roster.Voters, ch.cancel.former):
		e.reply(ch.cancel.request, nil)
	case e.committed():
		e.reply(ch.cancel.request, &election.Refusal{Why: election.DeniedDoneFirst})
	case e.now >= ch.cancel.deadline:
		e.reply(ch.cancel.request, &election.Refusal{Why: election.DeniedNotCancelled, Change: e.changeStatus()})
	default:
		ch.wakeAt = min(ch.wakeAt, ch.cancel.deadline)
		return
	}
	ch.cancel = nil
}

// askToCancel asks all other voters to cancel, since any of them may be the driver.
func (e *Elector) askToCancel() {
	ch := &e.change
	if ch.cancel == nil || ch.driver != nil || !e.roster.Joint() {
		return
	}
	if e.now >= ch.cancel.resendAt {
		ch.cancel.resendAt = e.now.Add(e.cfg.Timing.Heartbeat)
		for _, v := range e.roster.All() {
			if v.Peer != e.cfg.Self.Peer {
				e.send(v.Peer, election.RosterCancel{Version: e.roster.Version})
			}
		}
	}
	ch.wakeAt = min(ch.wakeAt, ch.cancel.resendAt)
}

func (e *Elector) rosterCancel(from election.PeerID, m election.RosterCancel) {
	if d := e.change.driver; d != nil && e.roster.Has(from) && m.Version.Driver == d.Ballot {
		d.GoBack()
	}
}

// changeStatus describes the change of the voters under way; nil: there is none.
func (e *Elector) changeStatus() *election.ChangeStatus {
	ch := &e.change
	if e.roster == nil || ch.driver == nil && !e.roster.Joint() {
		return nil
	}
	s := &election.ChangeStatus{Committed: e.roster.Committed, Outcome: e.awaitsOutcome(),
		NeedsNew: e.roster.Committed && !quorum.Confirmed(e.roster, e.reachable)}
	if c := e.contests.get(election.RosterElection); c != nil && e.now < c.Leader().Until {
		s.Driver = c.Leader().Holder.Peer
		if s.Driver != e.cfg.Self.Peer {
			s.Name = e.nameOf(s.Driver)
		}
	}
	d := ch.driver
	if d == nil {
		s.Missing = election.Names(e.roster.All(), func(v election.Voter) bool { return !e.reachable(v.Peer) })
		return s
	}
	s.Driver, s.Name, s.Back = e.cfg.Self.Peer, "", d.Back()
	if !d.Agreed() {
		s.Missing = election.Names(d.Proposal().All(), func(v election.Voter) bool { return !d.HasAccepted(v.Peer) })
	} else if until := d.WaitsUntil(); until != election.Never {
		s.PromisesEnd = until
	}
	return s
}
