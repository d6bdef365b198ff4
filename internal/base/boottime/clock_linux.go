package boottime

import "golang.org/x/sys/unix"

// These two clocks show a suspend: the first counts it, the second stops during it.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
