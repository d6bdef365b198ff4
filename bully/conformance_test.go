package bully_test

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// H. Garcia-Molina, "Elections in a Distributed Computing System", IEEE Trans.
// Computers C-31(1), 1982, assumes that messages arrive within a known time and
// that a node never pauses. Where that fails the algorithm elects two, or keeps
// waiting for one that restarted: S. D. Stoller, "Leader Election in
// Asynchronous Distributed Systems", IEEE Trans. Computers 49(3), 2000. These
// tests show the errors in the selection itself, where they belong; that the
// voters contain them is shown in the elector's conformance tests.

func three(t *testing.T) *selectiontest.Network {
	n := selectiontest.New(t, newSelector)
	n.Add("a", 3)
	n.Add("b", 2)
	n.Add("c", 1)
	return n
}

// TestGarciaMolina1982TimelyMessagesSelectTheBest shows the theorem: whoever
// notices first, and be it all at once.
func TestGarciaMolina1982TimelyMessagesSelectTheBest(t *testing.T) {
	for _, starters := range [][]election.PeerID{{"a"}, {"b"}, {"c"}, {"c", "a"}, {"a", "b", "c"}} {
		n := three(t)
		n.Elect(starters...) // fails unless a, and a alone, is nominated
	}
}

// TestStoller2000AWrongTimeoutGivesTwoNominees shows what late messages do: b
// takes a for dead, and both are nominated. That is all that it may cost: a
// nominee is no leader.
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

// TestStoller2000ARestartedProcessKeepsNobodyWaiting shows the other error: a
// answers b, restarts, and has forgotten that it was at it. b's wait ends by
// itself, and somebody is nominated.
func TestStoller2000ARestartedProcessKeepsNobodyWaiting(t *testing.T) {
	n := three(t)
	n.Start("b")
	n.Deliver() // a hears of it, is nominated, and answers
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

// TestALateCoordinatorEndsNoRound shows what the original takes at its word: a
// Coordinator of a leadership long over (Stoller 2000 tells such messages apart
// by incarnations). Here it makes nobody a leader, nor ends a round: it only
// makes its receiver wait, and not for ever.
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
