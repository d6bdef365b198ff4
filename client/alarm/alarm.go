// Package alarm rings at instants of CLOCK_BOOTTIME, the clock that deadlines
// of leases are told on.
//
// It guarantees that an alarm rings when that clock has reached its instant,
// after a suspend at once: Go's own timers stand still in suspend, and would
// ring late by as long as it lasted. It does not guarantee when a busy machine
// lets the one who waits for it run; whoever acts on a deadline also reads Now
// before each act.
//
// On Linux an alarm is a timerfd. Elsewhere it is a runtime timer that is
// looked after every tenth of a second, on the clock that is CLOCK_BOOTTIME's
// like there.
package alarm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the clock's reading in nanoseconds, the same in every process of
// the host.
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return ts.Nano()
}

// Until returns how long it is from now to the instant, never below 0.
func Until(instant int64) time.Duration {
	return max(0, time.Duration(instant-Now()))
}
