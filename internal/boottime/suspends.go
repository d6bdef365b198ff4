package boottime

import (
	"math"

	"golang.org/x/sys/unix"
)

// Suspends notices that the host was suspended: CLOCK_BOOTTIME has moved against a
// clock that stands still then. Both are kept by one oscillator and corrected alike,
// so while the host runs the difference stays what it was, to a nanosecond.
//
// It does not tell how long the host was suspended. The kernel counts that by a
// clock that goes on, if there is one, which may be one of whole seconds: what
// CLOCK_BOOTTIME gained may be a second more or less than the time that passed.
// A suspend for which it gained nothing is not noticed. A Suspends is not safe for
// concurrent use.
type Suspends struct {
	ahead int64 // at most that much was CLOCK_BOOTTIME ahead when it was read last
	read  func() (before, boot, after int64)
}

// slack is for rounding: the two clocks are made of the same reading, each rounded
// to a nanosecond. A busy machine needs none, see Seen. A gain that is smaller makes
// no lease longer than that.
const slack = 1000

// NewSuspends returns one that notices the suspends from now on.
func NewSuspends() *Suspends { return newSuspends(readings) }

func newSuspends(read func() (before, boot, after int64)) *Suspends {
	s := &Suspends{ahead: math.MaxInt64 - slack, read: read}
	s.Seen()
	return s
}

// Seen reports whether the host was suspended since it was last asked.
//
// CLOCK_BOOTTIME is read between two readings of the other, however long those are
// apart on a busy machine: it was ahead by boot-before at most and by boot-after at
// least. Only a gain that is beyond doubt is one. The least of the upper bounds is
// kept, so what a slow reading hides is seen by a later one.
func (s *Suspends) Seen() bool {
	before, boot, after := s.read()
	if boot-after > s.ahead+slack {
		s.ahead = boot - before
		return true
	}
	s.ahead = min(s.ahead, boot-before)
	return false
}

// readings reads all three the same way, so that one that is emulated is emulated
// alike.
func readings() (before, boot, after int64) {
	var ts [3]unix.Timespec
	for i, id := range [3]int32{still, counting, still} {
		_ = unix.ClockGettime(id, &ts[i]) // fails only for an unknown clock
	}
	return ts[0].Nano(), ts[1].Nano(), ts[2].Nano()
}
