package bully_test

import (
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// count returns how many messages an election takes among that many agents, from the first Election
// to the last Coordinator. The agent at that place in the order of ranks starts.
func count(t *testing.T, agents, place int, noVoters bool) int {
	n := selectiontest.Fleet(t, newSelector, agents, func(i int) int { return agents - i })
	n.NoVoters = noVoters
	n.Elect(n.Agents()[place].Rank.Peer)
	sum := 0
	for _, c := range n.Sent {
		sum += c
	}
	return sum
}

// TestCommonCaseIsLinear shows that 2n messages suffice, Coordinators included, if the best or
// second-best agent starts. That holds if all agents are voters. It also holds if none is: then the
// nominee has to send an Answer to each.
func TestCommonCaseIsLinear(t *testing.T) {
	for agents := 2; agents <= 50; agents++ {
		for place := range 2 {
			for _, noVoters := range []bool{false, true} {
				if got := count(t, agents, place, noVoters); got > 2*agents {
					t.Errorf("%d agents, place %d first, no voters %t: %d messages", agents, place+1, noVoters, got)
				}
			}
		}
	}
}

// TestWorstCaseIsQuadratic shows Garcia-Molina's bound: the worst-ranked agent starts, and every
// agent asks all better ones.
func TestWorstCaseIsQuadratic(t *testing.T) {
	t.Log("agents   best first   second first   worst first   all at once")
	for agents := 2; agents <= 50; agents++ {
		worst := count(t, agents, agents-1, false)
		n := selectiontest.Fleet(t, newSelector, agents, func(i int) int { return agents - i })
		var all []election.PeerID
		for _, a := range n.Agents() {
			all = append(all, a.Rank.Peer)
		}
		n.Elect(all...)
		atOnce := n.Sent["Election"] + n.Sent["Answer"] + n.Sent["Coordinator"]
		if limit := agents*agents - 1; worst > limit || atOnce > limit {
			t.Errorf("%d agents: %d messages, %d at once; want at most %d", agents, worst, atOnce, limit)
		}
		if agents == 2 || agents%10 == 0 || agents == 5 {
			t.Logf("%6d %12d %14d %13d %13d", agents, count(t, agents, 0, false), count(t, agents, 1, false), worst, atOnce)
		}
	}
}
