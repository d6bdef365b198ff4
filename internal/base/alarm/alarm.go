// Package alarm reads CLOCK_BOOTTIME, the clock of all deadlines, and rings alarms at its instants.
// Agent, client, lease pages and `doyen run` all read the clock here.
//
// It guarantees that an alarm rings once the clock has reached its instant. If that happens in a suspend,
// the alarm rings right after it. Go's own timers stop in a suspend, and would ring late by the length of
// the suspend. The package does not guarantee when a busy machine runs the goroutine that waits, so code
// that acts on a deadline also reads Now before each act.
//
// On Linux an alarm is a timerfd. On macOS it is a runtime timer that checks CLOCK_MONOTONIC every tenth
// of a second; that clock counts suspends there.
package alarm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the clock's reading in nanoseconds. The reading is the same in every process of the host.
// Every kernel that Go supports has the clock (Linux since 2.6.39).
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return ts.Nano()
}

// Until returns the time from now to the instant, or 0 if the instant has passed.
func Until(instant int64) time.Duration { return max(0, time.Duration(instant-Now())) }
