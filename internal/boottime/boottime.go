// Package boottime reads the clock every deadline of an agent is measured on:
// CLOCK_BOOTTIME on Linux, CLOCK_MONOTONIC on macOS, which is its like there.
//
// The clock counts the time a host is suspended, never steps back, and reads
// the same in every process of the host, so a program can check an agent's
// `_boottime_ns` fields itself. Go's own monotonic clock stands still in
// suspend on Linux, and is therefore not used.
//
// It does not notice that a hypervisor froze the whole clock, and readings of
// two hosts, or of two boots of one, say nothing about each other.
package boottime

import (
	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
)

// Now returns the clock's reading. A kernel without the clock (Linux before
// 2.6.39, which Go does not run on) would read as 0.
func Now() election.Instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return election.Instant(ts.Nano())
}
