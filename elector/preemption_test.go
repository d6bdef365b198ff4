package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestPreemptionByACandidateThatCannotLeadIsNotTriedForEver: b has the highest
// priority, and a disk that fails. The leader can't know that b can't lead, but
// it must not find out anew every preempt delay.
func TestPreemptionByACandidateThatCannotLeadIsNotTriedForEver(t *testing.T) {
	c := newCluster(t, Bully, "a", "b", "c")
	c.nodes["b"].prio = 200
	for _, n := range c.names {
		c.start(n)
	}
	c.run(20 * time.Millisecond)
	l := c.nodes["b"].elector.ledger
	l.Change(func(*election.State) {})
	l.Failed(l.Next(c.now).Write, c.now.Add(time.Hour))
	c.input("b", election.Resign{Election: election.Default})
	c.run(2 * time.Second)
	leaderless := 0
	for range 600 { // a minute
		c.run(100 * time.Millisecond)
		if c.leaders() == "" {
			leaderless++
		}
	}
	if leaderless > 30 {
		t.Fatalf("nobody led for %d of 600 samples", leaderless)
	}
}
