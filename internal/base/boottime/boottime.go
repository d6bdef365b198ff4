// Package boottime is the agent's clock: CLOCK_BOOTTIME on Linux, and CLOCK_MONOTONIC on
// macOS, where that counts suspends too. Package alarm reads it.
//
// The clock counts the time that a host is suspended, never steps back, and reads
// the same in every process of the host, so a program can check an agent's
// `_boottime_ns` fields itself. Go's own monotonic clock stops in suspend on Linux,
// and is therefore not used.
//
// It does not notice that a hypervisor froze the whole clock. Readings of two hosts, or
// of two boots of one host, can't be compared.
package boottime

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// Now returns the clock's reading.
func Now() election.Instant { return election.Instant(alarm.Now()) }
