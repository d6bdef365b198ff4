package boottime

import "golang.org/x/sys/unix"

const clock = unix.CLOCK_BOOTTIME

// By these a suspend is noticed: one counts it, the other stands still.
const (
	counting = unix.CLOCK_BOOTTIME
	still    = unix.CLOCK_MONOTONIC
)
