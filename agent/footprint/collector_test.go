package footprint

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestTheCollectorIsLazyUntilTheStartIsOver shows that little is collected while
// the agent starts, and that the heap is kept small once that is over.
func TestTheCollectorIsLazyUntilTheStartIsOver(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	t.Setenv("GOGC", "")
	os.Unsetenv("GOGC")
	if Limit(); percent() != startPercent {
		t.Errorf("%d at the start, want %d", percent(), startPercent)
	}
	if err := Trim(); err != nil || percent() != gcPercent {
		t.Errorf("%d after it, want %d (%v)", percent(), gcPercent, err)
	}
}
