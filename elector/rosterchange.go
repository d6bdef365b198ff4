package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// rosterChange is this agent's part as the driver of a roster change. The
// driver is the leader of the roster election; its term is the ballot. An
// agent stands in that election only while there is a change to drive: its own,
// or a joint roster that a former driver left behind (R3).
type rosterChange struct {
	want      *wantedRoster
	stage     changeStage
	driver    election.Term
	proposal  *election.Roster
	tell      []election.Voter // who is told of the proposal
	accepted  map[election.PeerID]bool
	floor     election.Term // the highest term in the acceptances (R4 ii)
	counter   uint64
	resendAt  election.Instant
	stableAt  election.Instant // every lease won under the old version is over then
	adoptAt   election.Instant // a joint roster that nobody drives is taken over then
	wakeAt    election.Instant
	seenJoint election.Version
}

// wantedRoster is a change asked for at this agent. Its voters are those of the
// roster it was asked of, changed: on any other it would undo what came between.
type wantedRoster struct {
	voters   []election.Voter
	of       election.Version
	request  election.RequestID
	deadline election.Instant
}

type changeStage uint8

const (
	notDriving changeStage = iota
	proposingJoint
	waitingOut // until old leases are over
	proposingStable
)

// changeRoster accepts a change to drive; its reply comes when it is done.
func (e *Elector) changeRoster(in election.ChangeRoster) *election.Refusal {
	voters, refusal := e.changedVoters(in)
	if refusal != nil {
		return refusal
	}
	e.change.want = &wantedRoster{voters: voters, of: e.roster.Version, request: in.Request,
		deadline: e.now.Add(10*e.cfg.Timing.Lease + 10*time.Second)}
	return nil
}

func (e *Elector) changedVoters(in election.ChangeRoster) ([]election.Voter, *election.Refusal) {
	switch {
	case !e.cfg.Quorum:
		return nil, &election.Refusal{Code: "no_quorum", Message: "this cluster runs without quorum (--quorum=false): it has no voters"}
	case e.roster == nil:
		return nil, &election.Refusal{Code: "no_quorum", Message: "there is no roster yet: the warning `formation` says what it waits for"}
	case !e.roster.Has(e.cfg.Self.Peer):
		return nil, &election.Refusal{Code: "not_voter", Message: "this agent is no voter: ask one"}
	case e.change.want != nil || e.roster.Joint():
		return nil, &election.Refusal{Code: "busy", Message: "another change of the roster is under way"}
	case !e.hasMajority():
		return nil, &election.Refusal{Code: "no_quorum", Message: "a majority of the voters can't be reached"}
	}
	voters := slices.DeleteFunc(slices.Clone(e.roster.Voters), func(v election.Voter) bool {
		return slices.Contains(in.Remove, v.Peer)
	})
	if len(voters)+len(in.Remove) != len(e.roster.Voters) {
		return nil, &election.Refusal{Code: "not_found", Message: "an agent to remove is no voter"}
	}
	for _, v := range in.Add {
		if slices.ContainsFunc(voters, func(w election.Voter) bool { return w.Peer == v.Peer || w.Name == v.Name }) {
			return nil, &election.Refusal{Code: "bad_request", Message: v.Name + " is a voter already"}
		}
		if !e.reachable(v.Peer) {
			return nil, notConnected(v.Name)
		}
		voters = append(voters, v)
	}
	if len(voters) == 0 {
		return nil, &election.Refusal{Code: "bad_request", Message: "the last voter can't be removed: add another one first"}
	}
	election.SortVoters(voters)
	return voters, nil
}

// advanceChange drives what there is to drive.
func (e *Elector) advanceChange() {
	ch := &e.change
	ch.wakeAt = election.Never
	if e.roster == nil {
		return
	}
	e.finishWanted()
	if !e.roster.Has(e.cfg.Self.Peer) && ch.stage == notDriving {
		return
	}
	c := e.contest(election.RosterElection)
	if c == nil {
		return
	}
	if ch.want == nil && !e.adopts() && ch.stage == notDriving {
		if c.standing {
			e.withdrawCandidacy(election.RosterElection, 0) // another driver finished it
		}
		return
	}
	c.standing, c.priority = true, election.DefaultPriority
	if c.role != leader {
		ch.stage = notDriving
		return
	}
	if ch.stage == notDriving || ch.driver != c.term {
		e.beginDriving(c.term)
	}
	e.drive()
}

// finishWanted answers the change asked for once it holds, or took too long.
func (e *Elector) finishWanted() {
	ch := &e.change
	if ch.want == nil {
		return
	}
	done := ch.stage == notDriving && !e.roster.Joint() && slices.Equal(e.roster.Voters, ch.want.voters)
	switch {
	case done:
		e.out.Replies = append(e.out.Replies, election.Reply{Request: ch.want.request})
	case e.overtakenChange():
		e.reply(ch.want.request, &election.Refusal{Code: "busy",
			Message: "another change of the roster came first: look at the voters, and ask again if it is still wanted"})
	case e.now >= ch.want.deadline:
		e.reply(ch.want.request, &election.Refusal{Code: "not_confirmed",
			Message: "the change was not confirmed in time; it may still be: ask again"})
	default:
		ch.wakeAt = min(ch.wakeAt, ch.want.deadline)
		return
	}
	ch.want = nil
	if !e.roster.Joint() {
		e.stopDriving()
	}
}

// overtakenChange reports whether the roster has become another one than that
// the wanted change was asked of, and by no change this agent still drives.
func (e *Elector) overtakenChange() bool {
	ch := &e.change
	drives := ch.stage != notDriving && ch.driver == e.roster.Version.Driver
	return !e.roster.Joint() && e.roster.Version != ch.want.of && !drives
}

// adopts reports whether this voter should drive a joint roster that was left
// behind: after a lease, and a random time more, without being finished.
func (e *Elector) adopts() bool {
	ch := &e.change
	if !e.roster.Joint() {
		ch.seenJoint = election.Version{}
		return false
	}
	if ch.seenJoint != e.roster.Version {
		ch.seenJoint = e.roster.Version
		ch.adoptAt = e.now.Add(2*e.cfg.Timing.Lease + e.jitter(e.cfg.Timing.Lease))
	}
	if e.now < ch.adoptAt {
		ch.wakeAt = min(ch.wakeAt, ch.adoptAt)
	}
	return e.now >= ch.adoptAt
}

func (e *Elector) stopDriving() {
	e.change.stage = notDriving
	e.change.proposal = nil
	e.withdrawCandidacy(election.RosterElection, 0)
}

// beginDriving proposes a joint roster: the one inherited, anew under this
// driver's term (R3), or the one wanted (R4 i).
func (e *Elector) beginDriving(driver election.Term) {
	ch := &e.change
	ch.driver, ch.counter, ch.floor = driver, 0, 0
	joint := *e.roster
	if !joint.Joint() && ch.want != nil && joint.Version == ch.want.of {
		if gone := e.goneSinceAsked(); gone != "" {
			e.reply(ch.want.request, notConnected(gone))
			ch.want = nil
			e.stopDriving()
			return
		}
		joint.Next = ch.want.voters
	}
	if !joint.Joint() {
		e.stopDriving() // it is done already
		return
	}
	e.proposeRoster(proposingJoint, joint)
}

// goneSinceAsked is the name of a voter to add who is not connected any more.
// With too many of those a joint roster never ends.
func (e *Elector) goneSinceAsked() string {
	for _, v := range e.change.want.voters {
		if !e.roster.Has(v.Peer) && !e.reachable(v.Peer) {
			return v.Name
		}
	}
	return ""
}

func notConnected(name string) *election.Refusal {
	return &election.Refusal{Code: "not_found", Message: name + " is not connected"}
}

func (e *Elector) proposeRoster(stage changeStage, r election.Roster) {
	ch := &e.change
	r.Version = election.Version{Driver: ch.driver, Counter: ch.counter}
	ch.counter++
	ch.stage, ch.proposal = stage, &r
	ch.accepted = map[election.PeerID]bool{}
	ch.tell = (&election.Roster{Voters: e.roster.All(), Next: r.All()}).All()
	ch.resendAt = e.now
}

// drive moves a change on: commit, wait, collect, then Stable.
func (e *Elector) drive() {
	ch := &e.change
	switch ch.stage {
	case notDriving:
		return
	case waitingOut:
		if e.now < ch.stableAt {
			ch.wakeAt = min(ch.wakeAt, ch.stableAt)
			return
		}
		stable := *ch.proposal
		stable.Voters, stable.Next = stable.Next, nil
		stable.Floor = max(stable.Floor, ch.floor)
		e.proposeRoster(proposingStable, stable)
	}
	if quorum.Confirmed(ch.proposal, func(id election.PeerID) bool { return ch.accepted[id] }) {
		e.committed()
		return
	}
	if e.now >= ch.resendAt {
		ch.resendAt = e.now.Add(e.cfg.Timing.Heartbeat)
		for _, v := range ch.tell {
			if !ch.accepted[v.Peer] {
				e.send(v.Peer, election.RosterPropose{Driver: ch.driver, Holder: e.cfg.Self, Roster: *ch.proposal})
			}
		}
	}
	ch.wakeAt = min(ch.wakeAt, ch.resendAt)
}

func (e *Elector) committed() {
	ch := &e.change
	if ch.stage == proposingJoint {
		ch.stage = waitingOut
		ch.stableAt = e.now.Add(quorum.Outlast(e.cfg.Timing.Lease, e.cfg.Drift))
		ch.wakeAt = min(ch.wakeAt, ch.stableAt)
		return
	}
	e.sendAllConnected(election.Report{Roster: ch.proposal, Stamp: e.now})
	e.stopDriving()
	e.finishWanted()
}

func (e *Elector) rosterAccept(from election.PeerID, m election.RosterAccept) {
	ch := &e.change
	if ch.proposal == nil || m.Version != ch.proposal.Version || m.Driver != ch.driver {
		return
	}
	ch.accepted[from] = true
	if ch.stage == proposingJoint {
		ch.floor = max(ch.floor, m.Highest)
	}
}

// rosterRefuse learns what stood in the way: a higher driver, or a newer roster.
func (e *Elector) rosterRefuse(m election.RosterRefuse) {
	if c := e.held(election.RosterElection); c != nil {
		c.highest = max(c.highest, m.Granted)
	}
	e.learnRoster(m.Roster)
}
