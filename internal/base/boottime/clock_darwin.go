package boottime

import "golang.org/x/sys/unix"

// These two clocks show a sleep: the one counts it, the other stands still meanwhile.
// Neither is corrected, so only a sleep moves them apart.
const (
	counting = unix.CLOCK_MONOTONIC_RAW
	still    = unix.CLOCK_UPTIME_RAW
)
