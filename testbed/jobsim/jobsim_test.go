package jobsim

import (
	"strings"
	"testing"
	"time"
)

// TestNoOccurrenceStartsTwiceOrIsPassedOverInSilence plays some fixed seeds, and some new ones.
func TestNoOccurrenceStartsTwiceOrIsPassedOverInSilence(t *testing.T) {
	for _, from := range []uint64{1, uint64(time.Now().UnixNano())} {
		t.Logf("from seed %d", from)
		counts, err := Sweep(t.Context(), from, 8000)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		counts.Print(&text)
		t.Logf("\n%s", text.String())
		if from > 1 {
			continue
		}
		for what, n := range map[string]int{"started again": counts.Again, "finished": counts.Finished, "failed": counts.Failed,
			"timed out": counts.TimedOut, "stopped": counts.Stopped, "unknown": counts.Unknown, "skipped": counts.Skipped,
			"missed": counts.Missed, "reported by the next leader": counts.ReportedAgain, "clocks jumped": counts.ClocksJumped, "behind what is done": counts.Behind} {
			if n == 0 {
				t.Errorf("nothing was %s: the worlds are too tame", what)
			}
		}
	}
}

func TestEqualSeedsAreEqualWorlds(t *testing.T) {
	if a, b := Story(7, 1000000), Story(7, 1000000); a != b || len(a) < 10000 {
		t.Errorf("two stories of seed 7, of %d and %d bytes", len(a), len(b))
	}
}
