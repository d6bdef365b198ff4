package bench

import (
	"testing"
)

func TestWatchersOfARealAgentAreAllReached(t *testing.T) {
	t.Parallel()
	b := small(t)
	const rounds = 2 // with at least one change each: a watcher that learns of the new leader first sees no end of the old leadership
	err := b.watched(t.Context(), 200, rounds)
	took, kib := b.samples("Watch", "ms/change"), b.samples("Watch", "KiB/watcher")
	if err != nil || len(took) < rounds {
		t.Errorf("changes %v, %v KiB: %v", took, kib, err)
	}
	t.Logf("ms until all had read: %.3g; %.3g KiB a watcher", took, kib)
}
