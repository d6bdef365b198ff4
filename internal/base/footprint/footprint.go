// Package footprint keeps an idle agent small. An agent sits on every host and does
// little, so memory and wake-ups matter more than the last bit of speed.
//
// It changes settings of the whole process, so only the daemon calls it. It guarantees nothing: a system may be
// unable to take pages back, or may not let a process delay its timers.
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

// startPercent is GOGC during the start, when exchanges and handshakes with all other agents leave much
// garbage. If many agents start at once on one machine, collecting as often as later would take a quarter of
// the machine's time.
const startPercent = 400

// startMemory is how many bytes Go may use during the start before it collects more often. Without this bound,
// an agent with many readers would use twice as much right after its start.
const startMemory = 64 << 20

// processors is how many cores run the agent's Go code at once. The agent never computes for long, so one
// is enough. If each message woke a second core, the agent would cost a fifth more when idle, and answers
// would take twice as long. System calls, such as writes to a slow disk, do not count.
const processors = 1

// timerSlack is how late the timers of the process may ring, so that the system can bundle them. While anything
// runs, Go's own monitor sleeps for only 20 µs at a time. Without slack, the monitor would cause a sixth of the
// agent's cost. The delay does not harm a leader, which steps down a quarter of a heartbeat before it must:
// that is 12 ms or more in every profile.
const timerSlack = 500 * time.Microsecond

// Limit makes the garbage collector work less until Trim, keeps the scheduler to one core and, where the system
// allows it, makes timers ring together. It does not override GOGC, GOMEMLIMIT or GOMAXPROCS.
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

// collect sets when the collector runs, unless the environment sets it.
func collect(percent int, memory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(memory)
		}
	}
}
