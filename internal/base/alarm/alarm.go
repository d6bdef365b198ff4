// Package alarm reads CLOCK_BOOTTIME, the clock of all deadlines, and rings at its
// instants. Agent, client, lease pages and `doyen run` all read it here.
//
// It guarantees that an alarm rings when that clock has reached its instant; if that
// happens in a suspend, it rings at once after it. Go's own timers stop in a suspend, and
// would ring late by its length. It does not guarantee when a busy machine runs the
// goroutine that waits; code that acts on a deadline also reads Now before each act.
//
// On Linux an alarm is a timerfd. On macOS it is a runtime timer that checks
// CLOCK_MONOTONIC, which counts a suspend there, every tenth of a second.
package alarm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the clock's reading in nanoseconds, the same in every process of the host.
// Every kernel that Go supports has the clock (Linux since 2.6.39).
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return ts.Nano()
}

// Until returns how long it is from now to the instant, never below 0.
func Until(instant int64) time.Duration {
	return max(0, time.Duration(instant-Now()))
}
