package footprint

import (
	"math"
	"os"
	"runtime/debug"
	"testing"
)

// During the start, Go collects only when there is much garbage. After it, Go keeps the heap small.
func TestTheCollectorIsLazyUntilTheStartIsOver(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	if Limit(); percent() != startPercent || debug.SetMemoryLimit(-1) != startMemory {
		t.Errorf("%d at the start, up to %d bytes, want %d, up to %d", percent(), debug.SetMemoryLimit(-1), startPercent, startMemory)
	}
	if err := Trim(); err != nil || percent() != gcPercent || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Errorf("%d after it, up to %d bytes, want %d without a bound (%v)", percent(), debug.SetMemoryLimit(-1), gcPercent, err)
	}
}
