package elector

import (
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// crowdOf makes gossip report so many more members, all of a higher rank than this agent. None of
// them is connected: only b and c are.
func (s *solo) crowdOf(better int) {
	for i := range better {
		m := member(fmt.Sprintf("m%03d", i), 100)
		m.JoinedAt = 1
		s.view.Members = append(s.view.Members, m)
	}
	s.step(election.ViewChanged{View: s.view})
}

// TestInACrowdTheBetterMembersGoFirstThoughTheyAreNotConnectedYet: many agents start together. Each
// gives the better ones time to start the first round. Once there was a leader, it does so no more.
func TestInACrowdTheBetterMembersGoFirstThoughTheyAreNotConnectedYet(t *testing.T) {
	t.Parallel()
	const better = 20
	wait := better * crowdStagger * (testTiming.Heartbeat / 4)
	o := newSolo(t, nil)
	o.crowdOf(better)
	o.campaign(election.Default)
	o.take()
	o.pass(wait - (testTiming.Heartbeat / 4))
	if asked := sentTo[election.VoteRequest](o.take(), "b"); len(asked) > 0 {
		t.Fatal("it goes first though others are better")
	}
	o.pass(2 * (testTiming.Heartbeat / 4))
	if asked := sentTo[election.VoteRequest](o.take(), "b"); len(asked) == 0 {
		t.Fatal("it waits for others that do nothing")
	}
	o.e.settled = true
	if firstTurn(o) != 0 {
		t.Error("it waits as long after there was a leader")
	}
}

// TestT12InACrowdMembersAreCountedOnlyWhereARoundMayStart: if they were counted in each of a thousand elections
// whenever one of a thousand members connects, that would take a minute of a processor.
func TestT12InACrowdMembersAreCountedOnlyWhereARoundMayStart(t *testing.T) {
	t.Parallel()
	const better = 20
	o := newSolo(t, nil)
	o.crowdOf(better)
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "default", Priority: 100}, {Election: "jobs", Priority: 100}}})
	o.campaign(election.Default)
	if n := o.e.contests.get("jobs").listing.better; n >= 0 {
		t.Errorf("counted %d better members in an election in which it is no candidate", n)
	}
	if n := o.e.contests.get(election.Default).listing.better; n != better {
		t.Errorf("counted %d better members, want %d", n, better)
	}
}

// TestAFewMembersDoNotWaitForThoseThatAreNotConnected shows that a cluster of usual size has no such
// delay.
func TestAFewMembersDoNotWaitForThoseThatAreNotConnected(t *testing.T) {
	t.Parallel()
	o := newSolo(t, nil)
	o.crowdOf(crowd - len(o.view.Members) - 1)
	o.campaign(election.Default)
	if firstTurn(o) != 0 {
		t.Error("one of a few waits for members that are not connected")
	}
}

// TestAPeerThatAnswersLateIsAskedLessAndLess: without answers, questions become rarer. An answer
// makes them frequent again.
func TestAPeerThatAnswersLateIsAskedLessAndLess(t *testing.T) {
	t.Parallel()
	o := newSolo(t, nil)
	o.step(election.PeerConnected{Peer: "d", Lineage: 1})
	asked := func() int {
		o.take()
		o.pass(8 * testTiming.Heartbeat)
		return len(sentTo[election.Inquiry](o.take(), "d"))
	}
	if n := asked(); n != 4 { // after 1, 2, 4 and 8 heartbeats
		t.Errorf("asked %d times in eight heartbeats, want 4", n)
	}
	if n := asked(); n != 1 {
		t.Errorf("asked %d times in the next eight, want 1", n)
	}
	o.hear("d", election.Report{Roster: soloRoster, Stamp: 5})
	if d := o.e.peers.get("d"); asked() != 0 || d.probes != 0 {
		t.Error("it is asked for what it has answered, or would be late to be asked again")
	}
}

func firstTurn(s *solo) election.Instant {
	c := s.e.held(election.Default)
	return c.FirstTurn()
}
