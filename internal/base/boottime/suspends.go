package boottime

import (
	"math"

	"golang.org/x/sys/unix"
)

// Suspends notices that the host was suspended: CLOCK_BOOTTIME has gained on a clock that
// stands still in a suspend. One oscillator drives both clocks, and both are corrected
// alike. So while the host runs, their difference stays the same to a nanosecond.
//
// It does not tell how long the host was suspended. The kernel measures that by a clock
// that goes on, if there is one, and that clock may count whole seconds: CLOCK_BOOTTIME may
// gain a second more or less than the time that passed. If it gains nothing, the suspend is
// not noticed. A Suspends is not safe for concurrent use.
type Suspends struct {
	ahead int64 // the least upper bound so far of how much CLOCK_BOOTTIME was ahead
	read  func() (before, boot, after int64)
}

// slack is for rounding: the kernel makes both clocks from one reading, each rounded to a
// nanosecond. A busy machine needs no slack, see Seen. A gain that slack hides makes a lease
// longer by no more than slack.
const slack = 1000

// NewSuspends returns a Suspends that notices suspends from now on.
func NewSuspends() *Suspends { return newSuspends(readings) }

func newSuspends(read func() (before, boot, after int64)) *Suspends {
	s := &Suspends{ahead: math.MaxInt64 - slack, read: read}
	s.Seen()
	return s
}

// Seen reports whether the host was suspended since it was last asked.
//
// CLOCK_BOOTTIME is read between two readings of the other clock, however far apart those
// are on a busy machine. So it was ahead by boot-before at most, and by boot-after at least.
// Only a gain beyond doubt counts as a suspend. The least upper bound is kept, so a later
// reading shows what a slow one hides.
func (s *Suspends) Seen() bool {
	before, boot, after := s.read()
	if boot-after > s.ahead+slack {
		s.ahead = boot - before
		return true
	}
	s.ahead = min(s.ahead, boot-before)
	return false
}

// Ahead returns how far CLOCK_BOOTTIME is ahead of the clock that stands still in a suspend, at
// most: a later process gives it to SuspendedSince.
func Ahead() int64 {
	ahead := int64(math.MaxInt64)
	for range 8 { // one of them was not interrupted
		before, boot, _ := readings()
		ahead = min(ahead, boot-before)
	}
	return ahead
}

// SuspendedSince reports whether the host was suspended since Ahead returned that, in this or
// another process, under the same kernel and in the same time namespace.
func SuspendedSince(ahead int64) bool {
	for range 8 {
		if _, boot, after := readings(); boot-after > ahead+slack {
			return true
		}
	}
	return false
}

// readings reads all three in the same way: where a hypervisor emulates clocks, it then
// emulates all three.
func readings() (before, boot, after int64) {
	var ts [3]unix.Timespec
	for i, id := range [3]int32{still, counting, still} {
		_ = unix.ClockGettime(id, &ts[i]) // fails only for an unknown clock
	}
	return ts[0].Nano(), ts[1].Nano(), ts[2].Nano()
}
