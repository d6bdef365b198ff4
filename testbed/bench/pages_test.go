package bench

import (
	"slices"
	"testing"
	"time"
)

func TestReadersOfThePageAreMeasured(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.on.Profile = "wan"
	if err := b.readPages(t.Context(), 3, 4, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if lost, answers := b.samples("Pages", leadsLost), b.samples("Pages", perRead); !slices.Equal(lost, []float64{0}) || len(answers) == 0 {
		t.Errorf("%v leads were lost, %d answers", lost, len(answers))
	}
}

func TestTheMemoryOfAnswersThatNobodyReadsIsMeasured(t *testing.T) {
	t.Parallel()
	b := small(t)
	if err := b.leaveUnread(t.Context(), 20, time.Second); err != nil {
		t.Fatal(err)
	}
	if used := b.samples("Unread", rss); len(used) < 20 || used[0] <= 0 {
		t.Errorf("MiB: %v", used)
	}
}
