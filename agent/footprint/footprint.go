// Package footprint keeps an idle agent small: an agent sits on every host and
// does little, so memory and wake-ups count for more than the last bit of speed.
//
// It changes what the whole process uses, so only the daemon calls it. It
// promises nothing: a system that can't give pages back keeps them, and one that
// does not let a process relax its timers leaves them as they are.
package footprint

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// gcPercent collects twice as often as Go does by default. The agent makes
// little garbage, so it costs nothing that can be measured.
const gcPercent = 50

// startPercent is GOGC until the start has ended. Exchanges and handshakes with all
// others leave much garbage then: where many agents start at once on one machine, a
// quarter of its time would go into collecting.
const startPercent = 400

// startMemory is how many bytes of memory Go may use in the start before it collects often.
// Without that bound, many readers of an agent that has just started would fill twice as much.
const startMemory = 64 << 20

// processors is how many cores run the agent's Go code at once. All it does is
// short, so that one is never busy for long; waking a second for each message
// costs a fifth more when idle, and makes an answer take twice as long. System
// calls, such as a slow disk's, do not count: they hold nobody up.
const processors = 1

// timerSlack is by how much the timers of the process may ring late, so that the
// system can bundle them. Go's own monitor sleeps for 20 µs at a time whenever
// anything runs, and would cost a sixth of what the agent does. A leader withdraws
// a quarter of a heartbeat before it must: in every profile 12 ms or more.
const timerSlack = 500 * time.Microsecond

// Limit has the collector spare the processor until Trim, keeps the scheduler to one core
// and, where the system allows it, has timers ring together. What GOGC, GOMEMLIMIT or
// GOMAXPROCS sets stays.
func Limit() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startPercent)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(startMemory)
		}
	}
	relaxTimers(timerSlack)
}

// shrink has the collector keep the heap small from now on, unless GOGC is set, and returns
// free memory to the system.
func shrink() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(math.MaxInt64)
		}
	}
	debug.FreeOSMemory()
}
