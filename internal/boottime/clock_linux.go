package boottime

import "golang.org/x/sys/unix"

// By these a suspend is noticed: one counts it, the other stands still.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
