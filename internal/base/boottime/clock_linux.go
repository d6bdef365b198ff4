package boottime

import "golang.org/x/sys/unix"

// These two clocks show a suspend: the one counts it, the other stands still meanwhile.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
