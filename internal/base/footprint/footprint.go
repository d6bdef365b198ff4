// Package footprint keeps an idle agent small. An agent sits on every host and does
// little, so memory and wake-ups matter more than the last bit of speed.
//
// It changes settings of the whole process, so only the daemon calls it. It guarantees nothing: a system
// may not be able to take pages back, and may not allow a process to delay its timers.
package footprint

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// gcPercent makes Go collect garbage twice as often as by default. The agent makes little
// garbage, so this costs nothing that can be measured.
const gcPercent = 50

// startPercent is GOGC until the start has ended. Exchanges and handshakes with all other agents leave much
// garbage then. If many agents start at once on one machine, collecting garbage as often as after the start
// would take a quarter of the machine's time.
const startPercent = 400

// startMemory is how many bytes Go may use during the start before it collects more often. Without this
// bound, many readers of an agent that has just started would make it use twice as much.
const startMemory = 64 << 20

// processors is how many cores run the agent's Go code at once. The agent never computes for long, so one
// is enough. If each message woke a second core, the agent would cost a fifth more when idle, and answers
// would take twice as long. System calls, such as writes to a slow disk, do not count.
const processors = 1

// timerSlack is how late the timers of the process may ring, so that the system can bundle them. While
// anything runs, Go's own monitor sleeps for only 20 µs at a time: without slack, the monitor would be a
// sixth of the agent's cost. The delay does a leader no harm: a leader steps down a quarter of a heartbeat
// before it must, which is 12 ms or more in every profile.
const timerSlack = 500 * time.Microsecond

// Limit reduces the work of the garbage collector until Trim, keeps the scheduler to one core and, where
// the system allows it, makes timers ring together. It does not change what GOGC, GOMEMLIMIT or
// GOMAXPROCS sets.
func Limit() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors)
	}
	collect(startPercent, startMemory)
	relaxTimers(timerSlack)
}

// shrink makes the collector keep the heap small from now on, unless GOGC is set. It returns free memory
// to the system.
func shrink() {
	collect(gcPercent, math.MaxInt64)
	debug.FreeOSMemory()
}

// collect sets when the collector runs, as far as the environment leaves that to the agent.
func collect(percent int, memory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(memory)
		}
	}
}
