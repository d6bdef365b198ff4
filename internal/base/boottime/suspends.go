package boottime

import (
	"math"

	"golang.org/x/sys/unix"
)

// Suspends notices that the host was suspended: CLOCK_BOOTTIME has then gained on a clock that stops in a
// suspend. One oscillator drives both clocks, and both are corrected alike. So while the host runs, their
// difference is constant to a nanosecond.
//
// It does not measure how long the host was suspended. The kernel measures that with another clock, which may
// count only whole seconds, so CLOCK_BOOTTIME may gain a second too much or too little. If it gains nothing,
// the suspend is not noticed. A Suspends is not safe for concurrent use.
type Suspends struct {
	ahead int64 // CLOCK_BOOTTIME was ahead by no more than this: the least such bound so far
	read  func() (before, boot, after int64)
}

// slack allows for rounding: the kernel computes both clocks from one reading and rounds each to a nanosecond.
// Delays of a busy machine need no slack, see Seen. If slack hides a gain, a lease lasts longer by at most
// slack.
const slack = 1000

// NewSuspends returns a Suspends that notices suspends after this call.
func NewSuspends() *Suspends { return newSuspends(readings) }

func newSuspends(read func() (before, boot, after int64)) *Suspends {
	s := &Suspends{ahead: math.MaxInt64 - slack, read: read}
	s.Seen()
	return s
}

// Seen reports whether the host was suspended since the last call.
//
// It reads CLOCK_BOOTTIME between two readings of the other clock, which may be far apart on a busy machine. So
// CLOCK_BOOTTIME was ahead by at most boot-before and at least boot-after. Only a gain beyond doubt counts as a
// suspend. Seen keeps the least upper bound: a gain that a slow reading hides is then found by a later, quicker
// one.
func (s *Suspends) Seen() bool {
	before, boot, after := s.read()
	if boot-after > s.ahead+slack {
		s.ahead = boot - before
		return true
	}
	s.ahead = min(s.ahead, boot-before)
	return false
}

// Ahead returns the most by which CLOCK_BOOTTIME may be ahead of the clock that stops in a suspend. A
// later process passes it to SuspendedSince.
func Ahead() int64 {
	ahead := int64(math.MaxInt64)
	for range 8 { // enough that at least one reading is not interrupted
		before, boot, _ := readings()
		ahead = min(ahead, boot-before)
	}
	return ahead
}

// SuspendedSince reports whether the host was suspended since Ahead returned this value. Ahead may have
// run in another process, under the same kernel and in the same time namespace.
func SuspendedSince(ahead int64) bool {
	for range 8 {
		if _, boot, after := readings(); boot-after > ahead+slack {
			return true
		}
	}
	return false
}

// readings reads both clocks by the same call, so a hypervisor that emulates clocks emulates both.
func readings() (before, boot, after int64) {
	var ts [3]unix.Timespec
	for i, id := range [3]int32{still, counting, still} {
		_ = unix.ClockGettime(id, &ts[i]) // fails only for an unknown clock
	}
	return ts[0].Nano(), ts[1].Nano(), ts[2].Nano()
}
