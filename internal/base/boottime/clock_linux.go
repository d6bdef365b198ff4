package boottime

import "golang.org/x/sys/unix"

// These two clocks show a suspend: counting counts it, the other one stops.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
