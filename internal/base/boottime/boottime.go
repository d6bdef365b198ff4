// Package boottime is the agent's clock: CLOCK_BOOTTIME on Linux; CLOCK_MONOTONIC on macOS, which counts
// suspends there too. Package alarm reads it.
//
// The clock counts the time for which the host is suspended and never steps back. Its reading is the same
// in every process of the host, so a program can check an agent's `_boottime_ns` fields itself. Go's own
// monotonic clock stops in a suspend on Linux, so it is not used.
//
// The package does not notice that a hypervisor froze all clocks. Readings from two hosts, or from two
// boots of one host, can't be compared.
package boottime

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

func Now() election.Instant { return election.Instant(alarm.Now()) }
