package bully_test

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// H. Garcia-Molina, "Elections in a Distributed Computing System", IEEE Trans. Computers C-31(1),
// 1982, assumes that messages arrive within a known time and that a node never pauses. Without
// that, the algorithm may elect two nodes, or wait forever for a restarted one: S. D. Stoller,
// "Leader Election in Asynchronous Distributed Systems", IEEE Trans. Computers 49(3), 2000. These
// tests show both errors in the selection. The elector's conformance tests show that the voters
// contain them.

func three(t *testing.T) *selectiontest.Network {
	n := selectiontest.New(t, newSelector)
	n.Add("a", 3)
	n.Add("b", 2)
	n.Add("c", 1)
	return n
}

// TestGarciaMolina1982TimelyMessagesSelectTheBest shows the paper's theorem, whichever agents start
// a round.
func TestGarciaMolina1982TimelyMessagesSelectTheBest(t *testing.T) {
	for _, starters := range [][]election.PeerID{{"a"}, {"b"}, {"c"}, {"c", "a"}, {"a", "b", "c"}} {
		n := three(t)
		n.Elect(starters...) // fails unless a is the only nominee
	}
}

// TestStoller2000AWrongTimeoutGivesTwoNominees shows what a late message does: b assumes that a is
// dead, and both are nominated. The cost is only time, because a nominee is not a leader.
func TestStoller2000AWrongTimeoutGivesTwoNominees(t *testing.T) {
	n := three(t)
	n.Start("b")
	n.Discard(0) // b's Election to a is late
	n.AdvanceTo(n.NextWake())
	n.Start("a")
	if got, want := n.Nominees(), []election.PeerID{"a", "b"}; !slices.Equal(got, want) {
		t.Fatalf("nominees are %v, want %v:\n%s", got, want, n.Trace())
	}
}

// TestStoller2000ARestartedProcessKeepsNobodyWaiting shows the other error: a answers b, restarts,
// and has forgotten its round. The wait of b still ends, and an agent is nominated.
func TestStoller2000ARestartedProcessKeepsNobodyWaiting(t *testing.T) {
	n := three(t)
	n.Start("b")
	n.Deliver() // a gets b's Election, is nominated, and answers
	n.Deliver()
	n.Agent("a").Selector.Stop() // all that its former life knew
	n.Agent("a").Nominee = false
	if got := n.Nominees(); len(got) != 0 {
		t.Fatalf("%v are nominated before the wait is over", got)
	}
	n.Settle(n.Now.Add(3*selectiontest.VoteTimeout), 100)
	if got := n.Nominees(); len(got) != 1 {
		t.Fatalf("nominees are %v, want one:\n%s", got, n.Trace())
	}
}

// TestALateCoordinatorEndsNoRound: the original algorithm believes a Coordinator of a leadership
// that ended long ago (Stoller 2000 recognizes such messages by incarnations). Here it makes no
// leader and ends no round: its receiver only waits, for a bounded time.
func TestALateCoordinatorEndsNoRound(t *testing.T) {
	n := three(t)
	n.Start("c")
	n.Send("b", "c", election.BullyCoordinator{Election: selectiontest.Election, Term: 1,
		Leader: election.Holder{Peer: "b", Lineage: 1}})
	n.Settle(n.Now.Add(3*selectiontest.VoteTimeout), 100)
	if got := n.Nominees(); !slices.Equal(got, []election.PeerID{"a"}) {
		t.Fatalf("nominees are %v, want a:\n%s", got, n.Trace())
	}
	if c := n.Agent("c"); c.Leads != nil {
		t.Fatal("c leads by hearsay")
	}
}
