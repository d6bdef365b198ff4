package elector

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// rosterChange is this agent's part in a change of the roster. The leader of the roster election
// drives it, with its term as the ballot. An agent is a candidate there only while it has a
// change to drive: one asked for here, or one that a former driver left (R3).
type rosterChange struct {
	want      *wantedRoster
	cancel    *wantedCancel
	restore   *wantedRestore
	driver    *quorum.Driver    // nil: this agent drives nothing
	lost      *election.Refusal // why the driver went back by itself; nil: it did not
	resendAt  election.Instant
	inheritAt election.Instant // when this agent drives on what a former driver left behind
	wakeAt    election.Instant
	seenJoint election.Version
	since     election.Instant // when the change under way began; Never: there is none
	agreed    election.Version // the newest stable roster known to be committed
}

// wantedRoster is a change asked for at this agent. It starts only from the roster that was
// held then: from a later one it would undo what came between.
type wantedRoster struct {
	voters   []election.Voter // those of goal
	goal     *election.Roster
	former   *election.Roster
	of       election.Version
	request  election.RequestID
	deadline election.Instant
}

// changeRoster accepts a change to drive. The reply follows once the change is done.
func (e *Elector) changeRoster(in election.ChangeRoster) *election.Refusal {
	switch {
	case in.Cancel:
		return e.cancelChange(in.Request)
	case in.Restore:
		return e.restore(in.Request)
	}
	goal, refusal := e.goal(in)
	if refusal != nil {
		return refusal
	}
	e.change.want = &wantedRoster{voters: goal.Voters, goal: goal, former: e.roster, of: e.roster.Version, request: in.Request,
		deadline: e.now.Add(10*e.cfg.Timing.Lease + 10*time.Second)}
	return nil
}

// noRosterToChange is why this agent can't change the voters; nil: it can.
func (e *Elector) noRosterToChange() *election.Refusal {
	switch {
	case !e.cfg.Quorum:
		return &election.Refusal{Why: election.DeniedNoVoters}
	case e.barred.Code != "":
		return e.whyBarred()
	case e.roster == nil:
		return &election.Refusal{Why: election.DeniedNoRoster}
	case !e.roster.Has(e.cfg.Self.Peer) && e.change.driver == nil:
		return &election.Refusal{Why: election.DeniedNotVoter}
	}
	return nil
}

// goal is the roster that a change asks for.
func (e *Elector) goal(in election.ChangeRoster) (*election.Roster, *election.Refusal) {
	if refusal := e.noRosterToChange(); refusal != nil {
		return nil, refusal
	}
	switch {
	case e.change.want != nil || e.change.driver != nil || e.roster.Joint():
		return nil, &election.Refusal{Why: election.DeniedOtherChange}
	case !e.hasMajority():
		return nil, &election.Refusal{Why: election.DeniedNoMajority}
	}
	if len(in.Add) == 0 && len(in.Remove) == 0 {
		r, refusal := e.revised(in)
		if refusal == nil {
			refusal = e.misfit(r)
		}
		return r, refusal
	}
	voters, refusal := e.changedVoters(in)
	r := *e.roster
	r.Voters = voters
	return &r, refusal
}

func (e *Elector) changedVoters(in election.ChangeRoster) ([]election.Voter, *election.Refusal) {
	voters := slices.DeleteFunc(slices.Clone(e.roster.Voters), func(v election.Voter) bool {
		return slices.Contains(in.Remove, v.Peer)
	})
	if len(voters)+len(in.Remove) != len(e.roster.Voters) {
		return nil, &election.Refusal{Why: election.DeniedRemoveNotVoter}
	}
	for _, v := range in.Add {
		if slices.ContainsFunc(voters, func(w election.Voter) bool { return w.Peer == v.Peer || w.Name == v.Name }) {
			return nil, &election.Refusal{Why: election.DeniedAddVoter, Agent: v.Name}
		}
		if !e.reachable(v.Peer) {
			if p := e.peers.get(v.Peer); p != nil && !e.speaks(p) {
				return nil, &election.Refusal{Why: election.DeniedOlderVersion, Agent: v.Name}
			}
			return nil, &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
		voters = append(voters, v)
	}
	if len(voters) == 0 {
		return nil, &election.Refusal{Why: election.DeniedLastVoter}
	}
	election.SortVoters(voters)
	return voters, nil
}

func (e *Elector) advanceChange() {
	ch := &e.change
	ch.wakeAt = election.Never
	if e.roster == nil || !e.cfg.Quorum {
		return
	}
	switch {
	case !e.roster.Joint() && !e.awaitsOutcome():
		ch.since = election.Never
	case ch.since == election.Never:
		ch.since = e.now
	}
	e.finishWanted()
	e.finishCancel()
	e.finishRestore()
	out := e.barred.Code != "" || !e.roster.Has(e.cfg.Self.Peer) && ch.driver == nil
	if out || ch.want == nil && ch.cancel == nil && !e.inherits() && ch.driver == nil {
		if c := e.contests.get(election.RosterElection); c != nil && c.Stands() {
			e.withdrawCandidacy(election.RosterElection, 0) // another driver finished the change
		}
		return
	}
	c := e.contest(election.RosterElection)
	if c == nil || ch.want != nil && !e.joinersReady() {
		return
	}
	c.Stand(true, election.DefaultPriority)
	switch {
	case c.Role() == contest.Leader && ch.driver != nil && ch.driver.Ballot == c.Term():
	case c.Role() == contest.Leader && e.awaitsOutcome() && e.keepsDriving() && (ch.driver.Agreed() || !e.wonUnderPresent(c)):
		// The outcome proposed under the former term is not committed yet, or waits for promises.
	case c.Role() == contest.Leader:
		e.beginDriving(c)
	case e.keepsDriving():
		c.Stand(false, election.DefaultPriority) // a vote for a higher ballot would end this one
	default:
		ch.driver = nil
	}
	e.drive(c)
	e.askToCancel()
}

// keepsDriving reports whether this agent drives on though it lost the roster election: a
// driver is safe by its ballot, not by a lease (R1). Only this agent can go back from its mark
// without the new voters (R12), and perhaps only it has the outcome that it proposed.
func (e *Elector) keepsDriving() bool {
	d := e.change.driver
	return d != nil && (d.MayAlwaysGoBack() || e.awaitsOutcome()) && !d.Hopeless() && e.roster.Version.Driver <= d.Ballot
}

// inherits reports whether this voter should drive on what a former driver left, after two
// leases and a random time.
func (e *Elector) inherits() bool {
	ch := &e.change
	if !e.roster.Joint() {
		ch.seenJoint = election.Version{}
		return false
	}
	if ch.seenJoint != e.roster.Version {
		ch.seenJoint = e.roster.Version
		ch.inheritAt = e.now.Add(2*e.cfg.Timing.Lease + e.rules.Jitter(e.cfg.Timing.Lease))
	}
	if e.now < ch.inheritAt {
		ch.wakeAt = min(ch.wakeAt, ch.inheritAt)
	}
	return e.now >= ch.inheritAt
}

func (e *Elector) stopDriving() {
	e.change.driver = nil
	e.withdrawCandidacy(election.RosterElection, 0)
}

// beginDriving proposes the inherited joint roster under this agent's own term (R3), or the
// wanted roster (R9).
func (e *Elector) beginDriving(c *entry) {
	ch := &e.change
	ch.lost = nil
	switch {
	case e.roster.Joint():
		ch.driver = quorum.InheritChange(c.Term(), e.cfg.Drift, e.roster, c.WonBy())
	case ch.want != nil && e.roster.Version == ch.want.of:
		if refusal := e.goneSinceAsked(); refusal != nil {
			e.reply(ch.want.request, refusal)
			ch.want = nil
			e.stopDriving()
			return
		}
		if !slices.Equal(ch.want.voters, e.roster.Voters) {
			ch.driver = quorum.NewDriver(c.Term(), e.cfg.Drift, e.roster, ch.want.voters)
		} else if e.wonUnderPresent(c) {
			ch.driver = quorum.NewRevision(c.Term(), e.cfg.Drift, e.roster, ch.want.goal)
		} else {
			e.stopDriving() // and is elected again, by voters that hold the roster to be revised
			return
		}
	default:
		if e.wonUnderPresent(c) {
			ch.agreed = e.roster.Version
		}
		e.stopDriving() // the change is done
		return
	}
	ch.resendAt = e.now
	if ch.cancel != nil {
		ch.driver.GoBack()
	}
}

// goneSinceAsked is why the wanted change can't start any more: a voter that is to be added can
// no longer be reached, or an agent can't follow the revised roster. nil: it can.
func (e *Elector) goneSinceAsked() *election.Refusal {
	w := e.change.want
	for _, v := range w.voters {
		if !e.roster.Has(v.Peer) && !e.reachable(v.Peer) {
			return &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
	}
	if slices.Equal(w.voters, e.roster.Voters) {
		return e.misfit(w.goal)
	}
	return nil
}

// drive repeats the driver's proposal until enough voters have accepted it.
func (e *Elector) drive(c *entry) {
	ch := &e.change
	d := ch.driver
	if d == nil {
		return
	}
	e.giveUpLostVoters(c)
	for d.Advance(e.now) {
		ch.resendAt = e.now
	}
	if d.Done() {
		ch.agreed = d.Proposal().Version
		e.sendAllConnected(election.Report{Roster: d.Proposal(), Stamp: e.now})
		e.stopDriving()
		e.finishWanted()
		e.finishCancel()
		return
	}
	if e.now >= ch.resendAt {
		ch.resendAt = e.now.Add(e.cfg.Timing.Heartbeat)
		for _, v := range (&election.Roster{Voters: e.roster.All(), Next: d.Proposal().All()}).All() {
			if !d.HasAccepted(v.Peer) {
				e.send(v.Peer, election.RosterPropose{Driver: d.Ballot, Holder: e.cfg.Self, Roster: *d.Proposal()})
			}
		}
	}
	ch.wakeAt = min(ch.wakeAt, ch.resendAt)
	if d.Agreed() {
		ch.wakeAt = min(ch.wakeAt, d.WaitsUntil())
	}
}

// giveUpLostVoters goes back when the new voters are lost and their votes are needed. It does
// so before the leases that need them expire, and judges that by its own lease (R10, R12).
func (e *Elector) giveUpLostVoters(c *entry) {
	ch := &e.change
	if !ch.driver.Marks() || ch.driver.Back() || !ch.driver.MayAlwaysGoBack() {
		return
	}
	r := ch.driver.Proposal()
	fades := election.Instant(0)
	if c.Role() == contest.Leader {
		fades = c.LeaseEnd(e.now).Add(-e.cfg.Timing.Lease / 3)
	}
	former := &election.Roster{Voters: r.Voters}
	switch {
	case !quorum.Accepted(former, e.reachable): // going back would not help
	case e.now < fades && quorum.Accepted(r, e.reachable):
		ch.wakeAt = min(ch.wakeAt, fades)
	default:
		ch.driver.GoBack()
		ch.lost = &election.Refusal{Why: election.DeniedVotersLost,
			Agent: strings.Join(election.Names(r.Next, func(v election.Voter) bool { return !e.reachable(v.Peer) }), ", ")}
	}
}

func (e *Elector) rosterAccept(from election.PeerID, m election.RosterAccept) {
	switch d := e.change.driver; {
	case d == nil || e.older(from):
	case !d.Asks(from):
		e.counters.Dropped["not_voter"]++
	default:
		d.Accept(e.now, from, m)
		if p := e.peers.get(from); p != nil {
			p.holds = m.Version
		}
		if d.TooFar(from) {
			e.counters.Dropped["term_leap"]++
		}
	}
}

func (e *Elector) rosterRefuse(from election.PeerID, m election.RosterRefuse) {
	if d := e.change.driver; d != nil {
		d.Refuse(from, m)
	}
	if c := e.held(election.RosterElection); c != nil && (e.votes(from, nil) || e.change.driver.Asks(from)) {
		e.learn(c, m.Granted)
	}
	e.learnRoster(from, m.Roster)
}
