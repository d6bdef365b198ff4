package history

import (
	"flag"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

var seeds = flag.Int("seeds", 300, "how many histories are judged")

const patience = 20 * time.Second

// TestTokensKeepTheCounterExact shows that a register which checks tokens is
// linearizable as a counter, through all changes of leaders.
func TestTokensKeepTheCounterExact(t *testing.T) {
	leaderships, done, refused := 0, 0, 0
	for s := uint64(1); s <= uint64(*seeds); s++ {
		w, err := play(s, true)
		if err != nil {
			t.Fatalf("seed %d: %v", s, err)
		}
		if verdict := w.history.judge(patience); verdict != porcupine.Ok {
			t.Errorf("seed %d: the history of %d operations is not linearizable: %s", s, len(w.history.operations), verdict)
		}
		leaderships, done, refused = leaderships+w.leaderships, done+w.done, refused+w.register.refused
	}
	t.Logf("%d histories, %d leaderships, %d operations of leaders, %d refused for an old token", *seeds, leaderships, done, refused)
	if leaderships < 3**seeds || done < 50**seeds || refused < *seeds/10 {
		t.Error("too little happens for this to show anything")
	}
}

// TestWithoutTheTokenCheckAPausedLeaderUndoesItsSuccessor shows that the lease
// alone does not suffice, and that the judge sees it: a leader that is paused
// between looking at its lease and writing (Kleppmann 2016) loses additions of
// its successor if the register takes every write.
func TestWithoutTheTokenCheckAPausedLeaderUndoesItsSuccessor(t *testing.T) {
	bad := 0
	for s := uint64(1); s <= 20; s++ {
		w, err := play(s, false)
		if err != nil {
			t.Fatalf("seed %d: %v", s, err)
		}
		if w.history.judge(patience) == porcupine.Illegal {
			bad++
		}
	}
	t.Logf("%d of 20 histories are not linearizable", bad)
	if bad == 0 {
		t.Error("all are: the judge is blind, or nothing goes wrong")
	}
}

// TestEqualSeedsGiveEqualHistories shows that a seed replays.
func TestEqualSeedsGiveEqualHistories(t *testing.T) {
	a, err := play(7, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := play(7, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.history.operations) != len(b.history.operations) {
		t.Fatalf("%d operations, then %d", len(a.history.operations), len(b.history.operations))
	}
	for i := range a.history.operations {
		if a.history.operations[i] != b.history.operations[i] {
			t.Fatalf("operation %d: %+v, then %+v", i, a.history.operations[i], b.history.operations[i])
		}
	}
}
