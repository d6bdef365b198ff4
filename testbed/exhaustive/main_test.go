package exhaustive

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the searches use more memory, because they make garbage at each step: that saves a sixth
// of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
