package elector

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

const tooLate = time.Hour

// settledTrio runs until a leads. By rank, b is next, then c.
func settledTrio(t *testing.T, algo string) *cluster {
	t.Helper()
	c := newCluster(t, algo, "a", "b", "c")
	for _, n := range c.names {
		c.start(n)
	}
	c.run(2 * testTiming.Lease)
	if got := c.leaders(); !strings.HasPrefix(got, "a@") {
		t.Fatalf("%q leads", got)
	}
	return c
}

func (c *cluster) wantLeader(name, when string) {
	c.t.Helper()
	if got := c.leaders(); !strings.HasPrefix(got, name+"@") {
		c.t.Errorf("%s %q leads, want %s", when, got, name)
	}
}

func (c *cluster) runsLate(name string) bool {
	return slices.ContainsFunc(c.nodes[name].elector.Status(c.Now).Warnings, func(w Warning) bool { return w.Code == "running_late" })
}

func TestALeaderThatRunsLateHandsOver(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		c := settledTrio(t, algo)
		first := c.leaders()
		c.input("a", election.Late{By: testTiming.Lease / 4}) // not above the limit
		c.run(hop)
		if c.runsLate("a") {
			t.Error("it warns too early")
		}
		c.input("a", election.Late{By: tooLate})
		c.run(testTiming.Lease / 5)
		c.input("a", election.Late{By: tooLate}) // the same delay again
		c.run(10 * hop)
		if got := c.leaders(); got != first || !c.runsLate("a") {
			t.Errorf("after one delay %q leads, warned %t", got, c.runsLate("a"))
		}
		c.run(testTiming.Lease / 5)
		c.input("a", election.Late{By: tooLate})
		c.run(20 * hop)
		c.wantLeader("b", "after two delays")
		c.run(2 * testTiming.Lease)
		if c.runsLate("a") {
			t.Error("it does not recover")
		}
		c.kill("b")
		c.run(3 * testTiming.Lease)
		c.wantLeader("a", "once it is on time again")
	}
}

// Delays that are more than a lease apart end no leadership.
func TestALeaderThatIsSeldomLateLeadsOn(t *testing.T) {
	c := settledTrio(t, election.Bully)
	first := c.leaders()
	for range 10 {
		c.input("a", election.Late{By: tooLate})
		c.run(testTiming.Lease + 2*hop)
	}
	if got := c.leaders(); got != first {
		t.Errorf("%q leads, not %q", got, first)
	}
}

func TestAnAgentThatRunsLateIsNoCandidate(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		c := settledTrio(t, algo)
		c.kill("a")
		for range 8 { // b has the best rank
			c.input("b", election.Late{By: tooLate})
			c.run(testTiming.Lease / 4)
		}
		c.wantLeader("c", "while b runs late")
	}
}

// If all agents run late, one of them still leads.
func TestWhereAllRunLateSomebodyLeads(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		c := settledTrio(t, algo)
		late := func() {
			for _, n := range []string{"b", "c"} {
				c.input(n, election.Late{By: tooLate})
			}
		}
		late()
		c.run(20 * hop)
		c.kill("a")
		for range 6 { // much shorter than a late agent waits for an agent that is on time
			late()
			c.run(testTiming.Lease / 4)
		}
		if c.leaders() == "" {
			t.Errorf("%s: nobody leads", algo)
		}
		before := c.leaders()
		for range 12 {
			late()
			c.run(testTiming.Lease / 4)
		}
		if got := c.leaders(); got != before {
			t.Errorf("%s: %q leads, not %q any more", algo, got, before)
		}
	}
}

// ledByA is a cluster of four agents, led by a. Of the others only b can lead, and d is an observer.
func ledByA(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["c"].prio, c.nodes["d"].observe = 0, true
	for _, n := range c.names {
		c.start(n)
	}
	c.run(2 * testTiming.Lease)
	c.wantLeader("a", "at the start")
	return c
}

// An agent that is on time may be unable for a reason that no other agent knows.
func TestAnAgentThatRunsLateDoesNotWaitForEver(t *testing.T) {
	c := ledByA(t)
	late := func(leases int) {
		for range 4 * leases {
			c.input("b", election.Late{By: tooLate})
			c.run(testTiming.Lease / 4)
		}
	}
	c.cut["d>b"], c.cut["d>c"] = true, true
	late(1)
	c.kill("a")
	late(1)
	if got := c.leaders(); got != "" {
		t.Fatalf("%q leads while d could", got)
	}
	late(3)
	c.wantLeader("b", "when d could not, for more than two leases,")
}

// All hosts may share one disk, which hangs. Renewals need no write, so the leader leads on. A
// successor could write no vote.
func TestALeaderWhoseWriteIsSlowLeadsOn(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		c := settledTrio(t, algo)
		first := c.leaders()
		c.Write = func(*virtual.Agent) time.Duration { return 4 * testTiming.Lease }
		ledger := c.nodes["a"].elector.ledger
		for ledger.WaitsSince() == election.Never {
			c.run(hop)
		}
		since := ledger.WaitsSince()
		for c.Now < since.Add(3*testTiming.Lease) {
			c.run(testTiming.Lease / 8)
			c.input("a", election.Late{By: c.Now.Sub(since)}) // as its loop does
			if got := c.leaders(); got != first {
				t.Fatalf("%s: %v after its write began %q leads, not %q", algo, c.Now.Sub(since), got, first)
			}
		}
		if !c.runsLate("a") {
			t.Errorf("%s: it does not warn", algo)
		}
	}
}

// d is on time and hears all, but wins no vote. b hands over to d once, and then asks for votes
// itself, though the voters report d's bids again and again.
func TestALeaderThatRunsLateHandsOverInVainOnce(t *testing.T) {
	c := ledByA(t)
	for _, link := range []string{"d>a", "d>c", "c>d"} {
		c.cut[link] = true
	}
	led, all := 0, 0
	late := func(leases int) {
		for range 4 * leases {
			c.input("b", election.Late{By: tooLate})
			for end := c.Now.Add(testTiming.Lease / 4); c.Now < end; all++ {
				c.run(hop)
				if c.leaders() != "" {
					led++
				}
			}
		}
	}
	late(1)
	c.kill("a")
	led, all = 0, 0
	late(30)
	if led < all*3/4 {
		t.Errorf("somebody led %d%% of 30 leases", led*100/all)
	}
}
