// Package alarm reads CLOCK_BOOTTIME, the clock of all deadlines, and rings alarms at its instants.
// Agent, client, lease pages and `doyen run` all read the clock here.
//
// It guarantees that an alarm rings once the clock has reached its instant. If that happens in a suspend, the
// alarm rings right after the suspend. Go's own timers stop in a suspend, and would ring late by its length. A
// busy machine may run the waiting goroutine later, so code that acts on a deadline also reads Now before each
// act.
//
// On Linux an alarm is a timerfd. On macOS it is a runtime timer that checks CLOCK_MONOTONIC, which counts
// suspends there, every tenth of a second.
package alarm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the clock's reading in nanoseconds, which is the same in every process of the host. Every kernel
// that Go supports has the clock (Linux since 2.6.39).
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return ts.Nano()
}

// Until returns the time from now to the instant, or 0 if the instant has passed.
func Until(instant int64) time.Duration { return max(0, time.Duration(instant-Now())) }
