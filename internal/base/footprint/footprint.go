// Package footprint keeps an idle agent small. An agent sits on every host and does
// little, so memory and wake-ups matter more than the last bit of speed.
//
// It changes settings of the whole process, so only the daemon calls it. It guarantees
// nothing: a system may be unable to take pages back, or may not let a process relax its
// timers.
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

// startPercent is GOGC until the start has ended. Exchanges and handshakes with all other
// agents leave much garbage then: if many agents start at once on one machine, collecting
// it would take a quarter of the machine's time.
const startPercent = 400

// startMemory is how many bytes of memory Go may use in the start before it collects often.
// Without that bound, many readers of an agent that has just started would fill twice as much.
const startMemory = 64 << 20

// processors is how many cores run the agent's Go code at once. The agent never computes
// for long, so one is enough. To wake a second core for each message would cost a fifth
// more when idle, and would make an answer take twice as long. System calls, such as
// writes to a slow disk, occupy none of them.
const processors = 1

// timerSlack is by how much the timers of the process may ring late, so that the system
// can bundle them. While anything runs, Go's own monitor sleeps for 20 µs at a time: without
// slack, that would be a sixth of the agent's cost. A leader may be that late: it withdraws
// a quarter of a heartbeat before it must, in every profile 12 ms or more.
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
