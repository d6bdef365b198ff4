package elector

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// If all agents are the last resort, the leader leads on, and when it is gone, another leads. A
// leader of last resort hands over as soon as another agent can be elected again.
func TestTheLastResortLeadsOnlyWhereNobodyElseCan(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		c := settledTrio(t, algo)
		last := func(name string, is bool) {
			c.input(name, election.Campaign{Election: election.Default, Priority: 100, LastResort: is})
		}
		for _, n := range []string{"b", "c", "a"} {
			last(n, true)
			c.run(20 * hop)
		}
		first := c.leaders()
		c.wantLeader("a", algo+": with all failing")
		c.run(5 * testTiming.Lease)
		if got := c.leaders(); got != first {
			t.Errorf("%s: %q leads, not %q any more", algo, got, first)
		}
		last("c", false)
		c.run(20 * hop)
		c.wantLeader("c", algo+": when it can")
		last("c", true)
		c.run(3 * testTiming.Lease)
		c.wantLeader("c", algo+": with all failing again")
		c.kill("c")
		c.run(3 * testTiming.Lease)
		c.wantLeader("a", algo+": when c is gone")
		last("a", false)
		c.run(3 * testTiming.Lease)
		last("b", false)
		c.run(3 * testTiming.Lease)
		c.wantLeader("a", algo+": when both can")
	}
}

// A last resort does not lead while another candidate can, even without preemption.
func TestTheLastResortGivesWayWithoutPreemption(t *testing.T) {
	c := settledTrio(t, election.Bully)
	c.input("a", election.Configure{})
	c.input("a", election.Campaign{Election: election.Default, Priority: 200, LastResort: true})
	c.run(20 * hop)
	c.wantLeader("b", "while a fails")
	c.kill("b")
	c.run(3 * testTiming.Lease / 2)
	if got := c.leaders(); got != "c@3" {
		t.Errorf("after b %q leads, want c in the next term", got)
	}
	c.kill("c")
	c.start("b")
	c.input("b", election.Campaign{Election: election.Default, Priority: 0})
	c.run(3 * testTiming.Lease)
	c.wantLeader("a", "when no other can")
}

// d hears all, but wins no vote: the last resort hands over to d in vain, less and less often.
func TestTheLastResortHandsOverInVainSeldom(t *testing.T) {
	c := ledByA(t)
	for _, link := range []string{"d>a", "d>c", "c>d"} {
		c.cut[link] = true
	}
	c.input("b", election.Campaign{Election: election.Default, Priority: 200, LastResort: true})
	c.run(testTiming.Lease)
	c.kill("a")
	led, all := 0, 0
	for end := c.Now.Add(40 * testTiming.Lease); c.Now < end; all++ {
		c.run(8 * hop)
		if c.leaders() != "" {
			led++
		}
	}
	if led < all/2 {
		t.Errorf("somebody led %d%% of 40 leases", led*100/all)
	}
}
