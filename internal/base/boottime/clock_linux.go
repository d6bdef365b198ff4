package boottime

import "golang.org/x/sys/unix"

// These two clocks show a suspend: the clock `counting` counts it, the clock `still` stops.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
