package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// wantedCancel is the way back from a change, asked for at this agent. The driver
// may be another one: it is asked until the change has ended one way or the other.
type wantedCancel struct {
	former   []election.Voter
	request  election.RequestID
	deadline election.Instant
	resendAt election.Instant
}

// cancelChange asks for the way back; its reply comes when the former voters
// decide alone again.
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
	case ch.driver == nil && !e.roster.Joint(): // asked for here, and not begun
		e.reply(ch.want.request, &election.Refusal{Why: election.DeniedCancelled})
		ch.want = nil
		e.reply(id, nil)
		return nil
	}
	ch.cancel = &wantedCancel{former: e.roster.Voters, request: id, resendAt: e.now,
		deadline: e.now.Add(5*e.cfg.Timing.Lease + 5*time.Second)}
	return nil
}

// finishCancel answers once the outcome of the change is committed, or can't be in
// time.
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

// rosterCancel takes the way back for a voter that asks for it. One that speaks
// of another ballot means another change.
func (e *Elector) rosterCancel(from election.PeerID, m election.RosterCancel) {
	if d := e.change.driver; d != nil && e.roster.Has(from) && m.Version.Driver == d.Ballot {
		d.GoBack()
	}
}

// namesOf lists the voters for which is holds.
func (e *Elector) namesOf(voters []election.Voter, is func(election.Voter) bool) []string {
	var names []string
	for _, v := range voters {
		if is(v) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// changeStatus says what a change of the voters waits for, nil if there is none.
func (e *Elector) changeStatus() *election.ChangeStatus {
	ch := &e.change
	if e.roster == nil || ch.driver == nil && !e.roster.Joint() {
		return nil
	}
	s := &election.ChangeStatus{Committed: e.roster.Committed, Outcome: e.awaitsOutcome(),
		NeedsNew: e.roster.Committed && !quorum.Confirmed(e.roster, e.reachable)}
	if c := e.contests.get(election.RosterElection); c != nil && e.now < c.leader.until {
		s.Driver = c.leader.holder.Peer
		if s.Driver != e.cfg.Self.Peer {
			s.Name = e.nameOf(s.Driver)
		}
	}
	d := ch.driver
	if d == nil {
		s.Missing = e.namesOf(e.roster.All(), func(v election.Voter) bool { return !e.reachable(v.Peer) })
		return s
	}
	s.Driver, s.Name, s.Back = e.cfg.Self.Peer, "", d.Back()
	if !d.Agreed() {
		s.Missing = e.namesOf(d.Proposal().All(), func(v election.Voter) bool { return !d.HasAccepted(v.Peer) })
	} else if d.Marks() {
		s.PromisesEnd = d.WaitsUntil()
	}
	return s
}
