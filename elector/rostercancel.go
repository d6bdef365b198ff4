package elector

import (
	"slices"
	"strings"
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
		return &election.Refusal{Code: "busy", Message: "the change is being cancelled already"}
	case ch.driver != nil && !ch.driver.GoBack():
		return &election.Refusal{Code: "busy", Message: "the change can't be cancelled any more: its outcome was sent to the voters, and some may hold it already; to undo it, make the opposite change once it is done"}
	case ch.driver == nil && !e.roster.Joint() && ch.want == nil:
		return &election.Refusal{Code: "not_found", Message: "no change of the voters is under way"}
	case ch.driver == nil && !e.roster.Joint() && e.roster.Version != ch.want.of:
		return &election.Refusal{Code: "busy", Message: "the change can't be cancelled any more: it has ended, and `doyen voters` shows the voters now; to undo it, make the opposite change"}
	case ch.driver == nil && !e.roster.Joint(): // asked for here, and not begun
		e.reply(ch.want.request, &election.Refusal{Code: "not_confirmed", Message: "the change was cancelled: the voters are as before"})
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
		e.reply(ch.cancel.request, &election.Refusal{Code: "busy", Message: "the change was not cancelled, because it was done first; to undo it, make the opposite change"})
	case e.now >= ch.cancel.deadline:
		e.reply(ch.cancel.request, &election.Refusal{Code: "not_confirmed", Message: "the change was not cancelled in time: " + e.describeChange()})
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
func (e *Elector) changeStatus() *ChangeStatus {
	ch := &e.change
	if e.roster == nil || ch.driver == nil && !e.roster.Joint() {
		return nil
	}
	s := &ChangeStatus{Committed: e.roster.Committed}
	if c := e.contests.get(election.RosterElection); c != nil && e.now < c.leader.until {
		s.Driver = c.leader.holder.Peer
	}
	d := ch.driver
	if d == nil {
		s.Missing = e.namesOf(e.roster.All(), func(v election.Voter) bool { return !e.reachable(v.Peer) })
		return s
	}
	s.Driver, s.Back = e.cfg.Self.Peer, d.Back()
	if !d.Agreed() {
		s.Missing = e.namesOf(d.Proposal().All(), func(v election.Voter) bool { return !d.HasAccepted(v.Peer) })
	} else if d.Marks() {
		s.PromisesEnd = d.WaitsUntil()
	}
	return s
}

// describeChange says in words what the change under way waits for.
func (e *Elector) describeChange() string {
	s := e.changeStatus()
	if s == nil {
		return ""
	}
	text := "nobody drives it now"
	switch {
	case s.Driver == e.cfg.Self.Peer:
		text = "this agent drives it"
	case s.Driver != "":
		text = e.nameOf(s.Driver) + " drives it"
	}
	switch missing := strings.Join(s.Missing, ", "); {
	case missing != "" && s.Driver == e.cfg.Self.Peer:
		text += ", and waits for " + missing + " to accept"
	case missing != "":
		text += "; this agent can't reach " + missing
	case s.PromisesEnd != 0:
		text += ", and waits until promises given under the former voters have ended"
	}
	if s.Committed && !quorum.Confirmed(e.roster, e.reachable) {
		text += "; it needs a majority of the former and one of the new voters, unless the agent that drove it still runs: there, doyen voters cancel goes back without the new ones"
	}
	return text
}
