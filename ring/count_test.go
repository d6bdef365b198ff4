package ring_test

import (
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// scatter gives distinct priorities that follow no order of the ring.
func scatter(agents int) func(int) int {
	return func(i int) int { return 1 + (i*7919+3)%10007*100 + i%agents }
}

// TestCommonCaseIsLinear shows that 3n messages suffice, Elected included, if one agent starts, at any of the sampled
// ranks. The token reaches the best agent in less than a round, goes round once more, and Elected follows. Acks, one for
// each hop, are counted separately.
func TestCommonCaseIsLinear(t *testing.T) {
	t.Log("agents   best first   most of any first   acks of that")
	for agents := 2; agents <= 50; agents++ {
		most, acks, best := 0, 0, 0
		for place := 0; place < agents; place += 1 + agents/10 {
			n := selectiontest.Fleet(t, newSelector, agents, scatter(agents))
			n.Elect(n.Agents()[place].Rank.Peer)
			sum := n.Sent["Election"] + n.Sent["Elected"]
			if sum > most {
				most, acks = sum, n.Sent["Ack"]
			}
			if place == 0 {
				best = sum
			}
			if n.Sent["Ack"] != n.Sent["Election"] {
				t.Errorf("%d agents, place %d first: sent %v", agents, place+1, n.Sent)
			}
		}
		if best != 2*agents || most > 3*agents {
			t.Errorf("%d agents: %d messages when the best starts, at most %d", agents, best, most)
		}
		if agents == 2 || agents%10 == 0 || agents == 5 {
			t.Logf("%6d %12d %19d %14d", agents, best, most, acks)
		}
	}
}

// TestWorstCaseIsQuadratic shows Chang and Roberts' bound: all start at once in a ring sorted from
// best to worst, and the i-th token makes i hops.
func TestWorstCaseIsQuadratic(t *testing.T) {
	t.Log("agents   Election   Ack   Elected")
	for agents := 2; agents <= 50; agents++ {
		n := selectiontest.Fleet(t, newSelector, agents, func(i int) int { return agents - i })
		var all []election.PeerID
		for _, a := range n.Agents() {
			all = append(all, a.Rank.Peer)
		}
		n.Elect(all...)
		if got, want := n.Sent["Election"], agents*(agents+1)/2; got != want {
			t.Errorf("%d agents: %d Elections, want %d", agents, got, want)
		}
		if agents == 2 || agents%10 == 0 || agents == 5 {
			t.Logf("%6d %10d %5d %9d", agents, n.Sent["Election"], n.Sent["Ack"], n.Sent["Elected"])
		}
	}
}
