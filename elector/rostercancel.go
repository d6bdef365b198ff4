package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// wantedCancel asks to go back from a change. If another agent drives it, that one is
// asked until the change has ended.
type wantedCancel struct {
	former   []election.Voter
	request  election.RequestID
	deadline election.Instant
	resendAt election.Instant
}

// cancelChange accepts to go back. The reply comes once the former voters decide alone.
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
	case ch.driver == nil && !e.roster.Joint(): // asked for at this agent, and not begun
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

// askToCancel asks the driver, which may be any voter.
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

// rosterCancel goes back, if the voter that asks means this driver's change.
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
	} else if d.Marks() {
		s.PromisesEnd = d.WaitsUntil()
	}
	return s
}
