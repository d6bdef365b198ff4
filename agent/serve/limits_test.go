package serve

import (
	"testing"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/election"
)

func TestWatchesAreSharedAmongUsers(t *testing.T) {
	s := New(Config{Clock: func() election.Instant { return 0 }}).watching
	taken := 0
	for uid := range uint32(8) {
		for s.begin(1000+uid, false) == nil {
			taken++
		}
		if uid == 0 && taken != maxWatches/sharing {
			t.Errorf("one user has %d watches, want %d", taken, maxWatches/sharing)
		}
	}
	if want := maxWatches - maxWatches/reserving; taken != want {
		t.Errorf("all users together have %d watches, want %d", taken, want)
	}
	if s.begin(0, true) != nil {
		t.Error("root finds no place")
	}
	s.watches.Leave(1000, 1)
	if s.begin(1000, false) != nil {
		// Root has taken an unreserved place, so the place that became free is reserved now.
		s.watches.Leave(0, 1)
		if s.begin(1000, false) != nil {
			t.Error("a place that became free is lost")
		}
	}
}

func TestFewFilesMakeFewPlaces(t *testing.T) {
	for files, want := range map[int]int{allFiles / 4: maxConns / 4, 0: maxConns, 2 * allFiles: maxConns, 1: 8} {
		if got := Bound(maxConns, files); got != want {
			t.Errorf("with %d files there are %d places, want %d", files, got, want)
		}
	}
}

// 1,200 idle connections once left the agent no file for writing its state.
func TestAllPlacesTogetherTakeNoMoreFilesThanThereAre(t *testing.T) {
	for files := 64; files < 2*allFiles; files++ {
		taken := Bound(maxPlain+maxStreams, files) + Bound(maxConns, files) + Bound(actors.MaxCandidacies, files)
		if taken > files {
			t.Fatalf("of %d files %d are taken", files, taken)
		}
	}
}
