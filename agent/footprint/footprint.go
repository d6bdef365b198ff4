// Package footprint keeps an idle agent small: an agent sits on every host and
// does little, so memory counts for more than the last bit of speed.
//
// It changes what the whole process uses, so only the daemon calls it. It
// promises nothing: a system that can't give pages back keeps them.
package footprint

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent collects twice as often as Go does by default. The agent makes
// little garbage, so it costs nothing that can be measured.
const gcPercent = 50

// processors is how many cores run the agent's Go code at once. All it does is
// short, so that one is never busy for long; waking a second for each message
// costs a fifth more when idle, and makes an answer take twice as long. System
// calls, such as a slow disk's, do not count: they hold nobody up.
const processors = 1

// Limit makes the collector keep the heap small, unless GOGC says otherwise, and
// the scheduler keep to one core, unless GOMAXPROCS does.
func Limit() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
