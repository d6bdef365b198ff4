package boottime

import "golang.org/x/sys/unix"

// These two clocks show a sleep: the clock `counting` counts it, the clock `still` stops. Neither clock is
// corrected, so only a sleep changes their difference.
const (
	counting = unix.CLOCK_MONOTONIC_RAW
	still    = unix.CLOCK_UPTIME_RAW
)
