package roster

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A change of the voters is reported as done only when its outcome is committed. Until then this agent may
// be the only one that has the outcome: if its disk were wiped, the other agents would wait for its vote.

// awaitsOutcome reports whether this agent has proposed the outcome of a change.
func (c *Change) awaitsOutcome() bool {
	return c.driver != nil && !c.driver.Proposal().Joint()
}

// Took records that a roster is now durable on this agent.
func (c *Change) Took(r *election.Roster) {
	if r != nil && c.ledger.State().Grant(election.RosterElection).Term <= r.Version.Driver {
		c.agrees = r.Version
	}
}

// committed reports whether the present roster is known to be stable and committed, so that a
// former voter's disk may be wiped. If that is not known, it asks the voters.
func (c *Change) committed(s *step) bool {
	if s.roster.Joint() || c.driver != nil {
		return false
	}
	if c.agreed == s.roster.Version {
		return true
	}
	// A voter counts only if it took this roster before it voted for a later driver. If it took the roster
	// after that vote, it did not accept it in the earlier ballot, and the later driver may undo the change.
	if quorum.Accepted(s.roster, func(id election.PeerID) bool {
		p := s.Peer(id)
		return id == c.cfg.Self.Peer && c.agrees == s.roster.Version || p != nil && p.Agrees == s.roster.Version && !s.Older(id)
	}) {
		c.agreed = s.roster.Version
		return true
	}
	c.askVoters(s, s.roster)
	s.wake(c.askAt)
	return false
}

// finishWanted replies when the outcome is committed, or at the deadline.
func (c *Change) finishWanted(s *step) {
	if c.want == nil {
		return
	}
	ended := c.ended(s)
	if ended && c.driver != nil {
		c.stopDriving(s) // another agent drove the change that has ended
	}
	wanted, former := s.roster.SameContent(c.want.goal), s.roster.SameContent(c.want.former)
	switch {
	case c.barred != nil:
		s.reply(c.want.request, c.barred)
	case ended && !wanted && !former:
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedOvertaken})
	case ended && c.committed(s) && wanted:
		s.reply(c.want.request, nil)
	case ended && c.committed(s) && c.lost != nil:
		s.reply(c.want.request, c.lost)
	case ended && c.committed(s):
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedCancelled})
	case c.behindJoiner(s) != "":
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedBehind, Agent: c.behindJoiner(s)})
	case s.now >= c.want.deadline && s.roster.Version == c.want.former.Version && c.driver == nil:
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedNotStarted, Obstacle: s.Obstacle()})
	case s.now >= c.want.deadline:
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedNotConfirmed, Change: c.Status(s)})
	default:
		s.wake(c.want.deadline)
		return
	}
	c.want, c.lost = nil, nil
	if !s.roster.Joint() && c.driver == nil {
		c.stopDriving(s)
	}
}

// ended reports whether some change, of any agent, has ended since the wanted one was asked for.
func (c *Change) ended(s *step) bool {
	drives := c.driver != nil && c.driver.Ballot == s.roster.Version.Driver
	return !s.roster.Joint() && s.roster.Version != c.want.former.Version && !drives
}

// wantedCancel is a command to go back from a change. If another agent drives the change, this agent
// asks all voters again and again to go back, until the change has ended (askToCancel).
type wantedCancel struct {
	former   []election.Voter
	request  election.RequestID
	deadline election.Instant
	resendAt election.Instant
}

// cancelChange starts to undo a change. The reply follows once the former voters alone decide again.
func (c *Change) cancelChange(s *step, id election.RequestID) *election.Refusal {
	if refusal := c.nothingToChange(s); refusal != nil {
		return refusal
	}
	idle := c.driver == nil && !s.roster.Joint()
	switch {
	case c.cancel != nil:
		return &election.Refusal{Why: election.DeniedCancelling}
	case c.driver != nil && !c.driver.GoBack():
		return &election.Refusal{Why: election.DeniedChangeSent}
	case idle && c.want == nil:
		return &election.Refusal{Why: election.DeniedNoChange}
	case idle && s.roster.Version != c.want.former.Version:
		return &election.Refusal{Why: election.DeniedChangeEnded}
	case idle: // the change was asked for at this agent, and has not started
		s.reply(c.want.request, &election.Refusal{Why: election.DeniedCancelled})
		c.want = nil
		s.reply(id, nil)
		return nil
	}
	c.cancel = &wantedCancel{former: s.roster.Voters, request: id, resendAt: s.now,
		deadline: s.now.Add(5*c.cfg.Lease + 5*time.Second)}
	return nil
}

func (c *Change) finishCancel(s *step) {
	switch {
	case c.cancel == nil:
		return
	case c.barred != nil:
		s.reply(c.cancel.request, c.barred)
	case c.committed(s) && slices.Equal(s.roster.Voters, c.cancel.former):
		s.reply(c.cancel.request, nil)
	case c.committed(s):
		s.reply(c.cancel.request, &election.Refusal{Why: election.DeniedDoneFirst})
	case s.now >= c.cancel.deadline:
		s.reply(c.cancel.request, &election.Refusal{Why: election.DeniedNotCancelled, Change: c.Status(s)})
	default:
		s.wake(c.cancel.deadline)
		return
	}
	c.cancel = nil
}

// askToCancel asks all other voters to cancel the change, since any of them may be its driver.
func (c *Change) askToCancel(s *step) {
	if c.cancel == nil || c.driver != nil || !s.roster.Joint() {
		return
	}
	if s.now >= c.cancel.resendAt {
		c.cancel.resendAt = s.now.Add(c.cfg.Heartbeat)
		for _, v := range s.roster.All() {
			if v.Peer != c.cfg.Self.Peer {
				s.send(v.Peer, election.RosterCancel{Version: s.roster.Version})
			}
		}
	}
	s.wake(c.cancel.resendAt)
}

type wantedRestore struct {
	request    election.RequestID
	generation uint64
	deadline   election.Instant
}

// restoreFormer goes back to the roster that this agent had before it adopted one that drops
// several voters. The reply follows when the former roster is durable.
func (c *Change) restoreFormer(s *step, id election.RequestID) *election.Refusal {
	state := c.ledger.State()
	switch {
	case c.barred != nil:
		return c.barred
	case c.restore != nil:
		return &election.Refusal{Why: election.DeniedRestoring}
	case state.Former == nil || state.Roster == nil:
		return &election.Refusal{Why: election.DeniedNothingToGoBack}
	}
	generation, ok := c.voter.Restore()
	if !ok {
		return &election.Refusal{Why: election.DeniedVoteOnItsWay}
	}
	c.restore = &wantedRestore{request: id, generation: generation, deadline: s.now.Add(5*c.cfg.Lease + 5*time.Second)}
	return nil
}

func (c *Change) finishRestore(s *step) {
	switch r := c.restore; {
	case r == nil:
		return
	case c.barred != nil:
		s.reply(r.request, c.barred)
	case c.ledger.Durable(r.generation):
		s.reply(r.request, nil)
	case s.now >= r.deadline:
		s.reply(r.request, &election.Refusal{Why: election.DeniedNotRestored})
	default:
		s.wake(r.deadline)
		return
	}
	c.restore = nil
}

// Status describes the change of the voters that is in progress; nil if there is none.
func (c *Change) Status(f Facts) *election.ChangeStatus {
	r, d := c.voter.Roster(), c.driver
	if r == nil || d == nil && !r.Joint() {
		return nil
	}
	s := &election.ChangeStatus{Committed: r.Committed, Outcome: c.awaitsOutcome(),
		NeedsNew: r.Committed && !quorum.Confirmed(r, f.Reachable)}
	if d == nil {
		if s.Driver = f.Lead().Leader; s.Driver != "" && s.Driver != c.cfg.Self.Peer {
			s.Name = f.NameOf(s.Driver)
		}
		s.Missing = election.Names(r.All(), func(v election.Voter) bool { return !f.Reachable(v.Peer) })
		return s
	}
	s.Driver, s.Back = c.cfg.Self.Peer, d.Back()
	if lacks := func(v election.Voter) bool { return !d.HasAccepted(v.Peer) || d.Lacks(v.Peer) }; !d.Agreed() || !d.CaughtUp() {
		s.Missing = election.Names(d.Proposal().All(), lacks)
	} else if until := d.WaitsUntil(); until != election.Never {
		s.PromisesEnd = until
	}
	return s
}

// Lasts reports whether a change has been in progress for two leases.
func (c *Change) Lasts(now election.Instant) bool {
	r := c.voter.Roster()
	return r != nil && (r.Joint() || c.awaitsOutcome()) && now >= c.since.Add(2*c.cfg.Lease)
}

// TooFar names the voters that report terms too high to be believed.
func (c *Change) TooFar() []string {
	if c.driver == nil {
		return nil
	}
	return election.Names(c.driver.Proposal().All(), func(v election.Voter) bool { return c.driver.TooFar(v.Peer) })
}
