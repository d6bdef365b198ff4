package boottime

import "golang.org/x/sys/unix"

// By these a sleep is noticed: one counts it, the other stands still. Neither is
// corrected, so nothing but a sleep moves them apart.
const (
	counting = unix.CLOCK_MONOTONIC_RAW
	still    = unix.CLOCK_UPTIME_RAW
)
