package bench

import (
	"testing"
)

func TestWatchersOfARealAgentAreAllReached(t *testing.T) {
	b := small(t)
	took, kib, err := b.watched(t.Context(), 200, 2)
	if err != nil || len(took) < 4 {
		t.Errorf("changes %v, %v KiB: %v", took, kib, err)
	}
	t.Logf("ms until all had read: %.3g; %.3g KiB a watcher", took, kib)
}
