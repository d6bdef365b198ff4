package elector

import (
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// votersAnd returns a cluster of the voters, and observers d and e, in which the
// voters have elected a.
func votersAnd(t *testing.T, voters string) *cluster {
	names := append(strings.Split(voters, ","), "d", "e")
	c := newCluster(t, election.Bully, names...)
	for _, n := range []string{"d", "e"} {
		c.nodes[n].observe, c.nodes[n].prio = true, 0
	}
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	return c
}

// killAt runs until the marked or unmarked proposal is sent, and kills those agents before it arrives.
func (c *cluster) killAt(committed bool, names ...string) {
	done := false
	c.spy = func(_ string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); ok && !done && m.Roster.Joint() && m.Roster.Committed == committed {
			done = true
			for _, n := range names {
				c.nodes[n].Up = false
			}
		}
	}
	c.run(testTiming.Lease / 4)
	c.spy = nil
	if !done {
		c.t.Fatal("no such proposal")
	}
	for _, n := range names {
		c.kill(n)
	}
}

// leadsOn runs for that many leases, and demands that a leads in term 1 throughout.
func (c *cluster) leadsOn(leases int) {
	c.t.Helper()
	for range 24 * leases {
		c.run(testTiming.Lease / 24)
		if got := c.leaders(); got != "a@1" {
			c.t.Fatalf("leads: %q, want a@1 all the time (R10)", got)
		}
	}
}

func (c *cluster) roster(at string) election.Roster { return *c.nodes[at].elector.roster }

// replyTo returns why the command was refused, "done", or "" before the reply.
func (c *cluster) replyTo(at string, id election.RequestID) election.Denial {
	for _, r := range c.nodes[at].replies {
		switch {
		case r.Request == id && r.Refusal != nil:
			return r.Refusal.Why
		case r.Request == id:
			return "done"
		}
	}
	return ""
}

func (c *cluster) wantVoters(at, names string) {
	c.t.Helper()
	if r := c.roster(at); r.Joint() || voterNames(r)[:len("stable ")+len(names)] != "stable "+names {
		c.t.Fatalf("%s holds %s, want %s, stable", at, voterNames(r), names)
	}
}

// needy is a change of the given voters. The change can't end without d or e.
func needy(voters string, id election.RequestID) election.ChangeRoster {
	switch voters {
	case "a":
		return election.ChangeRoster{Add: nodesOf("d"), Request: id}
	case "a,b":
		return election.ChangeRoster{Add: nodesOf("d", "e"), Request: id}
	}
	return election.ChangeRoster{Add: nodesOf("d", "e"), Remove: []election.PeerID{"b", "c"}, Request: id}
}

// newVotersLost is a cluster in which one agent drives a change that needs d or e. Both die before
// the change's mark is proposed or, if marked is true, after that.
func newVotersLost(t *testing.T, voters, at string, marked bool) *cluster {
	c := votersAnd(t, voters)
	c.input(at, needy(voters, 1))
	c.killAt(marked, "d", "e")
	return c
}

func TestR10LeadersSurviveANewVoterThatNeverComesAndCancelLeadsBack(t *testing.T) {
	for _, voters := range []string{"a", "a,b", "a,b,c"} {
		t.Run(voters, func(t *testing.T) {
			c := newVotersLost(t, voters, "a", false)
			c.leadsOn(4)
			status := c.nodes["a"].elector.Status(c.Now)
			if ch := status.Change; ch == nil || ch.Driver != "a" || !slices.Contains(ch.Missing, "d") || ch.Committed {
				t.Fatalf("the change is shown as %+v, want that it waits for d", ch)
			}
			if !slices.ContainsFunc(status.Warnings, func(w Warning) bool { return w.Code == "voters_change" }) {
				t.Fatalf("warnings %+v, want one of the change", status.Warnings)
			}
			c.input("a", election.ChangeRoster{Cancel: true, Request: 2})
			c.leadsOn(3)
			c.wantVoters("a", voters)
			if add, cancel := c.replyTo("a", 1), c.replyTo("a", 2); add != election.DeniedCancelled || cancel != "done" {
				t.Fatalf("add: %q, cancel: %q", add, cancel)
			}
			c.start("e")
			c.run(testTiming.Heartbeat)
			c.input("a", election.ChangeRoster{Add: nodesOf("e"), Request: 3})
			c.run(4 * testTiming.Lease)
			if got := c.replyTo("a", 3); got != "done" || !c.nodes["a"].elector.roster.Has("e") {
				t.Fatalf("after the way back another voter can't be added: %q", got)
			}
		})
	}
}

func TestR12CancelMayBeAskedOfAnyVoter(t *testing.T) {
	c := newVotersLost(t, "a,b,c", "b", false)
	c.leadsOn(1)
	c.input("c", election.ChangeRoster{Cancel: true, Request: 2})
	c.leadsOn(1)
	c.wantVoters("c", "a,b,c")
	if add, cancel := c.replyTo("b", 1), c.replyTo("c", 2); add != election.DeniedCancelled || cancel != "done" {
		t.Fatalf("add: %q, cancel: %q", add, cancel)
	}
}

func TestR11ANewDriverGoesBackFromAnUnmarkedRosterWithoutTheNewVoters(t *testing.T) {
	c := newVotersLost(t, "a,b,c", "b", false)
	c.run(testTiming.Heartbeat)
	if !c.nodes["c"].elector.roster.Joint() {
		t.Fatal("c does not hold the joint roster")
	}
	c.kill("b")
	c.input("c", election.ChangeRoster{Cancel: true, Request: 2})
	c.leadsOn(4)
	c.wantVoters("c", "a,b,c")
	if got := c.replyTo("c", 2); got != "done" {
		t.Fatalf("cancel: %q", got)
	}
}

func TestR11AVoterAloneGoesBackAfterARestart(t *testing.T) {
	c := votersAnd(t, "a")
	c.input("a", election.ChangeRoster{Add: nodesOf("d"), Request: 1})
	c.killAt(false, "d")
	c.run(testTiming.Heartbeat)
	c.kill("a")
	c.start("a")
	c.run(2 * testTiming.Lease)
	if got := c.leaders(); got != "a@2" || !c.nodes["a"].elector.roster.Joint() {
		t.Fatalf("leads: %q, holds %s", got, voterNames(c.roster("a")))
	}
	c.input("a", election.ChangeRoster{Cancel: true, Request: 2})
	c.run(2 * testTiming.Lease)
	c.wantVoters("a", "a")
	if got := c.leaders(); got != "a@2" || c.replyTo("a", 2) != "done" {
		t.Fatalf("leads: %q, cancel: %q", got, c.replyTo("a", 2))
	}
}

// Once the mark is proposed, votes of the new voters count. Only the driver can go back without
// them. It does so as soon as they are lost, before a lease expires.
func TestR12ADriverThatLosesTheNewVotersAfterItsMarkGoesBackByItself(t *testing.T) {
	for _, voters := range []string{"a", "a,b", "a,b,c"} {
		t.Run(voters, func(t *testing.T) {
			c := newVotersLost(t, voters, "a", true)
			c.leadsOn(3)
			c.wantVoters("a", voters)
			if got := c.replyTo("a", 1); got != election.DeniedVotersLost {
				t.Fatalf("add: %q, want that the new voters were lost", got)
			}
		})
	}
}

func TestR12NewVotersThatFallSilentAfterTheMarkCostNoLead(t *testing.T) {
	c := votersAnd(t, "a")
	c.input("a", election.ChangeRoster{Add: nodesOf("d"), Request: 1})
	done := false
	c.spy = func(_ string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); ok && m.Roster.Committed && !done {
			done = true
			c.cut["a>d"], c.cut["d>a"] = true, true // connected, and silent
		}
	}
	c.leadsOn(3)
	c.wantVoters("a", "a")
	if !done {
		t.Fatal("the mark was not proposed")
	}
}

// A driver that was cut off from all others lost the leadership. It may still use its ballot.
func TestR12ADriverThatLostTheRosterElectionStillLeadsBack(t *testing.T) {
	c := votersAnd(t, "a,b")
	c.input("a", needy("a,b", 1))
	done := false
	c.spy = func(_ string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); !ok || !m.Roster.Committed || done {
			return
		}
		done = true
		c.nodes["d"].Up, c.nodes["e"].Up = false, false
		c.cut["a>b"], c.cut["b>a"] = true, true
		c.input("a", election.PeerLost{Peer: "b"})
		c.input("b", election.PeerLost{Peer: "a"})
	}
	c.run(testTiming.Lease / 4)
	c.kill("d")
	c.kill("e")
	c.run(3 * testTiming.Lease)
	if got := c.leaders(); got != "" || !done || !c.nodes["a"].elector.roster.Committed {
		t.Fatalf("leads: %q, a holds %s; want nobody, and the mark", got, voterNames(c.roster("a")))
	}
	delete(c.cut, "a>b")
	delete(c.cut, "b>a")
	c.input("a", election.PeerConnected{Peer: "b", Lineage: c.nodes["b"].Lineage})
	c.input("b", election.PeerConnected{Peer: "a", Lineage: c.nodes["a"].Lineage})
	c.run(4 * testTiming.Lease)
	c.wantVoters("a", "a,b")
	if c.leaders() == "" || c.replyTo("a", 1) != election.DeniedVotersLost {
		t.Fatalf("leads: %q, add: %q", c.leaders(), c.replyTo("a", 1))
	}
}

func TestR13AnInheritedMarkIsNotLedBackWithoutTheNewVoters(t *testing.T) {
	c := votersAnd(t, "a,b")
	c.input("b", election.ChangeRoster{Add: nodesOf("d", "e"), Request: 1})
	c.killAt(true, "d", "e", "b") // a never got the mark: it may go back
	c.start("b")                  // b has it on its disk, and forgot that it drove
	c.run(testTiming.Lease)
	if !c.nodes["b"].elector.roster.Committed {
		t.Fatalf("b holds %s", voterNames(c.roster("b")))
	}
	c.input("b", election.ChangeRoster{Cancel: true, Request: 2})
	c.run(12 * testTiming.Lease)
	if r := c.roster("b"); !r.Joint() || !r.Committed {
		t.Fatalf("b went back to %s", voterNames(r))
	}
	if got := c.replyTo("b", 2); got != election.DeniedNotCancelled {
		t.Fatalf("cancel: %q, want that it was not cancelled", got)
	}
	c.start("d")
	c.start("e")
	c.run(testTiming.Heartbeat)
	c.input("b", election.ChangeRoster{Cancel: true, Request: 3})
	c.run(8 * testTiming.Lease)
	c.wantVoters("b", "a,b")
	if got := c.replyTo("b", 3); got != "done" || c.leaders() == "" {
		t.Fatalf("cancel: %q, leads: %q", got, c.leaders())
	}
}

func TestCancelIsRefusedWhenThereIsNothingToCancelOrItIsTooLate(t *testing.T) {
	c := votersAnd(t, "a")
	c.input("a", election.ChangeRoster{Cancel: true, Request: 1})
	c.run(hop)
	if got := c.replyTo("a", 1); got != election.DeniedNoChange {
		t.Fatalf("nothing under way: %q, want not_found", got)
	}
	c.input("d", election.ChangeRoster{Cancel: true, Request: 2})
	c.run(hop)
	if got := c.replyTo("d", 2); got != election.DeniedNotVoter {
		t.Fatalf("asked of an observer: %q, want not_voter", got)
	}
	c.input("a", election.ChangeRoster{Add: nodesOf("d"), Request: 3})
	asked := false
	c.spy = func(_ string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); ok && !m.Roster.Joint() && !asked {
			asked = true
			c.input("a", election.ChangeRoster{Cancel: true, Request: 4})
		}
	}
	c.run(4 * testTiming.Lease)
	if add, cancel := c.replyTo("a", 3), c.replyTo("a", 4); add != "done" || cancel != election.DeniedChangeSent {
		t.Fatalf("add: %q, cancel once the new voters were proposed: %q; want done, and that it was sent", add, cancel)
	}
}

func TestALateCancelOfAnEarlierChangeDoesNotEndALaterOne(t *testing.T) {
	s, p := changing(t, 0)
	s.connect("z", election.Report{})
	stale := p.Roster.Version
	stale.Driver--
	s.hear("b", election.RosterCancel{Version: stale})
	s.hear("z", election.RosterCancel{Version: p.Roster.Version}) // not a voter
	s.mark(p, "d", "b")
	s.hear("b", election.RosterCancel{Version: election.Version{Driver: p.Driver}})
	if back := s.proposal(s.take(), "b").Roster; back.Joint() || !slices.Equal(back.Voters, voters("a", "b", "c")) {
		t.Fatalf("proposes %+v after a voter's cancel, want a, b, c", back)
	}
}

func nodesOf(names ...string) (vs []election.Voter) {
	for _, n := range names {
		vs = append(vs, election.Voter{Name: n, Peer: election.PeerID(n)})
	}
	return vs
}
