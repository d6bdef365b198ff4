// Package footprint keeps an idle agent small: an agent sits on every host and
// does little, so memory counts for more than the last bit of speed.
//
// It changes what the whole process uses, so only the daemon calls it. It
// promises nothing: a system that can't give pages back keeps them.
package footprint

import (
	"os"
	"runtime/debug"
)

// gcPercent collects twice as often as Go does by default. The agent makes
// little garbage, so it costs nothing that can be measured.
const gcPercent = 50

// Limit makes the collector keep the heap small, unless GOGC says otherwise.
func Limit() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
