package boottime

import "golang.org/x/sys/unix"

// These two clocks show a sleep: the first counts it, the second stops during it. Neither is corrected,
// so only a sleep makes their difference change.
const (
	counting = unix.CLOCK_MONOTONIC_RAW
	still    = unix.CLOCK_UPTIME_RAW
)
