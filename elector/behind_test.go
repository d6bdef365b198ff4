package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// replaced returns a cluster in which d and e replaced the voters a and b while x was away. a and b
// are gone, and x is back. x is the third voter if xVotes is set.
func replaced(t *testing.T, xVotes bool) *cluster {
	c := newCluster(t, election.Bully, "a", "b", "x", "d", "e")
	c.nodes["d"].observe, c.nodes["e"].observe, c.nodes["x"].observe = true, true, !xVotes
	for _, n := range c.names {
		c.start(n)
	}
	c.run(2 * testTiming.Lease)
	c.kill("x")
	c.input("b", election.ChangeRoster{Add: nodesOf("d"), Remove: []election.PeerID{"a"}, Request: 1})
	c.run(10 * testTiming.Lease)
	c.kill("a")
	c.run(3 * testTiming.Lease)
	c.input("d", election.ChangeRoster{Add: nodesOf("e"), Remove: []election.PeerID{"b"}, Request: 2})
	c.run(10 * testTiming.Lease)
	c.kill("b")
	c.start("x")
	c.run(5 * testTiming.Lease)
	if b, d := c.replyTo("b", 1), c.replyTo("d", 2); b != "done" || d != "done" {
		t.Fatalf("the changes: %q, %q; want done", b, d)
	}
	return c
}

// warns reports whether one agent has a warning with that code about another.
func (c *cluster) warns(at, code, about string) bool {
	for _, w := range c.nodes[at].elector.Status(c.Now).Warnings {
		if w.Code == code && w.Agent == about {
			return true
		}
	}
	return false
}

func TestAVoterThatDoesNotTakeOverThePresentRosterIsNoSpare(t *testing.T) {
	c := replaced(t, true)
	for _, n := range []string{"d", "e"} {
		q := c.nodes[n].elector.Status(c.Now).Quorum
		if q.Voters != 3 || q.Reachable != 2 || !q.Exists || !q.Edge {
			t.Errorf("%s: %+v, want 2 of 3, and that one loss ends it", n, q)
		}
		if !c.warns(n, "voter_behind", "x") {
			t.Errorf("%s does not warn that x is behind", n)
		}
	}
	if !c.warns("x", "roster_doubted", "d") {
		t.Errorf("x does not warn of the roster that d reports")
	}
	if c.leaders() == "" {
		t.Error("nobody leads")
	}
	c.start("b") // as the warnings advise
	c.run(3 * testTiming.Lease)
	for _, n := range []string{"d", "e"} {
		if q := c.nodes[n].elector.Status(c.Now).Quorum; q.Reachable != 3 || c.warns(n, "voter_behind", "x") {
			t.Errorf("%s, with b there for a moment: %+v; want 3 of 3, and no warning", n, q)
		}
	}
	c.kill("b")
	c.kill("e")
	c.run(4 * testTiming.Lease)
	if c.leaders() == "" {
		t.Error("nobody leads after a loss that x makes up for")
	}
}

func TestAnAgentThatDoesNotTakeOverThePresentRosterIsNotAdded(t *testing.T) {
	c := replaced(t, false)
	c.input("d", election.ChangeRoster{Add: nodesOf("x"), Request: 5})
	c.run(3 * testTiming.Lease)
	r := c.nodes["d"].replies[len(c.nodes["d"].replies)-1]
	if r.Request != 5 || r.Refusal == nil || r.Refusal.Why != election.DeniedBehind || r.Refusal.Agent != "x" {
		t.Fatalf("%+v, want that x can't be added, and why", r.Refusal)
	}
	c.wantVoters("d", "d,e")
	c.start("b") // as the refusal advises
	c.run(testTiming.Lease)
	c.input("d", election.ChangeRoster{Add: nodesOf("x"), Request: 6})
	c.run(4 * testTiming.Lease)
	if got := c.replyTo("d", 6); got != "done" {
		t.Fatalf("once x has heard of it from b: %q, want done", got)
	}
}

// Without a leader, what this agent knows of a voter's roster may be out of date.
func TestAVoterThatOnlySeemsBehindIsAskedBeforeItCountsAsLost(t *testing.T) {
	s := newLone(t, trioState())
	s.tells("b", elsewhere("a", "b", "c"))
	s.tells("c", soloRoster)
	s.take()
	s.pass(testTiming.Lease - time.Millisecond)
	sent := s.take()
	if len(sentTo[election.Inquiry](sent, "c")) == 0 || len(sentTo[election.Report](sent, "c")) == 0 {
		t.Fatalf("sent %+v, want that c is told and asked", sent)
	}
	if !s.e.reachable("c") {
		t.Fatal("c counts as lost within a lease")
	}
	s.pass(2 * time.Millisecond)
	if s.e.reachable("c") || s.e.Status(s.now).Quorum.Reachable != 2 {
		t.Fatal("c counts as reachable though it did not take over the roster for a lease")
	}
	s.tells("c", elsewhere("a", "b", "c"))
	if !s.e.reachable("c") || s.e.Status(s.now).Quorum.Reachable != 3 {
		t.Fatal("c does not count though it holds the present roster")
	}
}

func TestR1AStrangerIsToldThatItsProposalIsNotAccepted(t *testing.T) {
	s := newLone(t, trioState())
	s.connect("z", election.Report{})
	s.take()
	s.hear("z", election.RosterPropose{Driver: 9, Holder: election.Holder{Peer: "z", Lineage: 1}, Roster: *elsewhere("a", "b", "z")})
	sent := s.take()
	if r := sentTo[election.RosterRefuse](sent, "z"); len(r) != 1 || r[0].Driver != 9 || r[0].Roster.Version != soloRoster.Version || len(sentTo[election.RosterAccept](sent, "z")) != 0 {
		t.Fatalf("sent %+v, want one refusal with the roster held", sent)
	}
}
