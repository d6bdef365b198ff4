package roster

import (
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

func (c *Change) Advance(f Facts) Verdict {
	s := new(step).begin(c, f)
	if s.roster == nil {
		return s.out
	}
	s.lead = f.Lead()
	c.bringUp(s)
	switch {
	case !s.roster.Joint() && !c.awaitsOutcome():
		c.since = election.Never
	case c.since == election.Never:
		c.since = s.now
	}
	c.finishWanted(s)
	c.finishCancel(s)
	c.finishRestore(s)
	out := c.barred != nil || !s.roster.Has(c.cfg.Self.Peer) && c.driver == nil
	switch {
	case out || c.want == nil && c.cancel == nil && !c.inherits(s) && c.driver == nil:
		s.out.Withdraw = true // another driver may have finished the change
	case c.want == nil || c.joinersReady(s):
		s.out.Stand = true
		c.lead(s)
		c.drive(s)
		c.askToCancel(s)
	}
	return s.out
}

// lead makes this agent drive if it leads the roster election. If not, it decides whether this agent still drives.
func (c *Change) lead(s *step) {
	leads := s.lead.Term != 0
	switch {
	case leads && c.driver != nil && c.driver.Ballot == s.lead.Term:
	case leads && c.awaitsOutcome() && c.keepsDriving(s) && (c.driver.Agreed() || !s.wonUnderPresent()):
		// The outcome that was proposed in the former term is not committed yet, or still waits for promises.
	case leads:
		c.beginDriving(s)
	case c.keepsDriving(s):
		s.out.Stand, s.out.Aside = false, true // as a candidate it would ask for votes for a higher ballot, and end the present one
	default:
		c.driver = nil
	}
}

// keepsDriving reports whether this agent drives on although it lost the roster election. That is safe, because
// voters check the ballot and not the lease (R1). It may be needed: only this agent can go back from
// its mark without the new voters (R12), and perhaps no other agent has the outcome that it proposed.
func (c *Change) keepsDriving(s *step) bool {
	d := c.driver
	return d != nil && (d.MayAlwaysGoBack() || c.awaitsOutcome()) && !d.Hopeless() && s.roster.Version.Driver <= d.Ballot
}

// inherits reports whether this voter should continue the change that a former driver left. It
// waits for two leases and a random time first.
func (c *Change) inherits(s *step) bool {
	if !s.roster.Joint() {
		c.seenJoint = election.Version{}
		return false
	}
	if c.seenJoint != s.roster.Version {
		c.seenJoint = s.roster.Version
		c.inheritAt = s.now.Add(2*c.cfg.Lease + c.cfg.Jitter(c.cfg.Lease))
	}
	if s.now < c.inheritAt {
		s.wake(c.inheritAt)
	}
	return s.now >= c.inheritAt
}

func (c *Change) stopDriving(s *step) {
	c.driver = nil
	s.lead = Lead{}
	s.out.Withdraw, s.out.Stand = true, false
}

// beginDriving proposes the joint roster that another driver left (R3), or else the wanted roster
// (R9), under this agent's own term.
func (c *Change) beginDriving(s *step) {
	c.lost = nil
	switch {
	case s.roster.Joint():
		c.driver = quorum.InheritChange(s.lead.Term, c.cfg.Drift, s.roster, s.lead.WonBy)
	case c.want != nil && s.roster.Version == c.want.former.Version:
		if refusal := c.goneSinceAsked(s); refusal != nil {
			s.reply(c.want.request, refusal)
			c.want = nil
			c.stopDriving(s)
			return
		}
		if !slices.Equal(c.want.goal.Voters, s.roster.Voters) {
			c.driver = quorum.NewDriver(s.lead.Term, c.cfg.Drift, s.roster, c.want.goal.Voters)
		} else if s.wonUnderPresent() {
			c.driver = quorum.NewRevision(s.lead.Term, c.cfg.Drift, s.roster, c.want.goal)
		} else {
			c.stopDriving(s) // this agent must be elected again, by voters that have the roster to be revised
			return
		}
	default:
		if s.wonUnderPresent() {
			c.agreed = s.roster.Version
		}
		c.stopDriving(s) // the change has ended
		return
	}
	c.resendAt = s.now
	if c.cancel != nil {
		c.driver.GoBack()
	}
}

// wonUnderPresent reports whether a majority with the present roster granted the term. If that
// roster is stable, no ballot under an earlier roster can win any more.
func (s *step) wonUnderPresent() bool {
	return s.lead.WonBy != nil && s.lead.WonBy.Version == s.roster.Version
}

func (c *Change) drive(s *step) {
	d := c.driver
	if d == nil {
		return
	}
	c.giveUpLostVoters(s)
	for d.Advance(s.now) {
		c.resendAt = s.now
	}
	if d.Done() {
		c.agreed = d.Proposal().Version
		for _, id := range s.Connected() {
			s.send(id, election.Report{Roster: d.Proposal(), Stamp: s.now})
		}
		c.stopDriving(s)
		c.finishWanted(s)
		c.finishCancel(s)
		return
	}
	if s.now >= c.resendAt {
		c.resendAt = s.now.Add(c.cfg.Heartbeat)
		for _, v := range (&election.Roster{Voters: s.roster.All(), Next: d.Proposal().All()}).All() {
			if !d.HasAccepted(v.Peer) || d.Lacks(v.Peer) {
				s.send(v.Peer, election.RosterPropose{Driver: d.Ballot, Holder: c.cfg.Self, Roster: *d.Proposal(), CatchUp: d.CatchesUp()})
			}
		}
	}
	s.wake(c.resendAt)
	if until := d.WaitsUntil(); d.Agreed() && s.now < until {
		s.wake(until)
	}
}

// giveUpLostVoters goes back when the new voters are lost and their votes are needed. It does so before
// leases that need those votes expire, judged by this agent's own lease (R10, R12).
func (c *Change) giveUpLostVoters(s *step) {
	if !c.driver.Marks() || c.driver.Back() || !c.driver.MayAlwaysGoBack() {
		return
	}
	r := c.driver.Proposal()
	fades := s.lead.Until.Add(-c.cfg.Lease / 3) // has passed if this agent does not lead
	switch {
	case !quorum.Accepted(&election.Roster{Voters: r.Voters}, s.Reachable): // going back would not help
	case s.now < fades && quorum.Accepted(r, s.Reachable):
		s.wake(fades)
	default:
		c.driver.GoBack()
		c.lost = &election.Refusal{Why: election.DeniedVotersLost,
			Agent: strings.Join(election.Names(r.Next, func(v election.Voter) bool { return !s.Reachable(v.Peer) }), ", ")}
	}
}

// Asks reports whether this agent drives a change that needs the acceptance of the given agent.
func (c *Change) Asks(id election.PeerID) bool { return c.driver.Asks(id) }

func (c *Change) Accepted(f Facts, from election.PeerID, m election.RosterAccept) Verdict {
	s := new(step).begin(c, f)
	switch d := c.driver; {
	case d == nil || f.Older(from):
	case !d.Asks(from):
		s.out.Dropped = "not_voter"
	default:
		d.Accept(s.now, from, m)
		if p := f.Peer(from); p != nil {
			p.Holds = m.Version
		}
		if d.TooFar(from) {
			s.out.Dropped = "term_leap"
		}
	}
	return s.out
}

func (c *Change) Refused(f Facts, from election.PeerID, m election.RosterRefuse) Verdict {
	if d := c.driver; d != nil {
		d.Refuse(from, m)
	}
	return c.Learn(f, from, m.Roster)
}

// Cancelled goes back from the change that this agent drives: another voter was asked to cancel it.
func (c *Change) Cancelled(from election.PeerID, m election.RosterCancel) {
	if d := c.driver; d != nil && c.voter.Roster().Has(from) && m.Version.Driver == d.Ballot {
		d.GoBack()
	}
}

// Suspended makes the voters accept again: a suspend hides from this agent when their promises end.
func (c *Change) Suspended(now election.Instant) {
	if d := c.driver; d != nil {
		d.Recount()
		c.resendAt = now
	}
}
