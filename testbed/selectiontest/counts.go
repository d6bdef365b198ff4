package selectiontest

import (
	"fmt"

	"github.com/doyen-election/doyen/election"
)

// Fleet returns a network of size agents. rank gives the priority of the agent with the i-th
// peer ID, counted from 0.
func Fleet(tb TB, m Maker, size int, rank func(i int) int) *Network {
	tb.Helper()
	n := New(tb, m)
	for i := range size {
		n.Add(election.PeerID(fmt.Sprintf("p%03d", i)), rank(i))
	}
	return n
}

// Elect starts the given agents at the same moment, delivers everything and confirms the
// nominee. It fails the test unless the best agent is the only nominee.
func (n *Network) Elect(starters ...election.PeerID) {
	n.tb.Helper()
	for _, s := range starters {
		n.Start(s)
	}
	n.DeliverAll(stormLimit)
	best := n.agents[0].Rank.Peer
	if got := n.Nominees(); len(got) != 1 || got[0] != best {
		n.tb.Fatalf("nominees are %v, want %s", got, best)
	}
	n.Confirm(best, 1)
	n.DeliverAll(stormLimit)
}
