package elector

import (
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// crowdOf has gossip tell of so many members that rank above this agent, of which
// only b and c are connected.
func (s *solo) crowdOf(better int) {
	for i := range better {
		m := member(fmt.Sprintf("m%03d", i), 100)
		m.JoinedAt = 1
		s.view.Members = append(s.view.Members, m)
	}
	s.step(election.ViewChanged{View: s.view})
}

// TestInACrowdTheBetterMembersGoFirstThoughTheyAreNotConnectedYet shows that of many
// that begin together, each leaves the others that are better the time to start the
// first round, and that this holds for the first leader only.
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

// TestAFewMembersDoNotWaitForThoseThatAreNotConnected shows that a usual cluster is as
// quick as ever.
func TestAFewMembersDoNotWaitForThoseThatAreNotConnected(t *testing.T) {
	t.Parallel()
	o := newSolo(t, nil)
	o.crowdOf(crowd - len(o.view.Members) - 1)
	o.campaign(election.Default)
	if firstTurn(o) != 0 {
		t.Error("one of a few waits for members that are not connected")
	}
}

// TestAPeerThatAnswersLateIsAskedLessAndLess shows that questions without an answer
// become rarer, and that an answer makes up for it.
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
