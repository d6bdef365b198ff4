package leasepage

import (
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// clock reads CLOCK_BOOTTIME as cheaply as Go's own clocks, which need no system call.
//
// The kernel drives three clocks by one oscillator. In a suspend, CLOCK_MONOTONIC stands
// still, and CLOCK_REALTIME and CLOCK_BOOTTIME both gain the same time. So as long as
// CLOCK_REALTIME less CLOCK_MONOTONIC is what it was at a sample, there was no suspend
// since, and CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC by as much as at the sample. When
// that difference has changed, by a suspend or because somebody set the time of day, the
// system is asked and a new sample taken.
//
// Invariant: a reading is at least what CLOCK_BOOTTIME was when the reading began, less
// tolerance. Only one thing breaks that: somebody sets the time of day back by the length
// of a suspend, to within a microsecond, after the suspend and before the next reading.
type clock struct {
	sample atomic.Pointer[sample]
	// Where the readings come from; a test has its own sources.
	pair func() (wall, mono int64) // from one time.Now, which reads wall first
	boot func() int64
}

// sample is how far the clocks were apart at one moment.
type sample struct {
	wallAhead int64 // CLOCK_REALTIME less CLOCK_MONOTONIC
	bootAhead int64 // CLOCK_BOOTTIME less CLOCK_MONOTONIC
}

const (
	// tolerance is by how much the difference of the clocks may vary, since they are read
	// one after the other.
	tolerance = int64(time.Microsecond)
	// closeBy is how far apart the readings of a sample may be: leases seem shorter by
	// as much until the next sample. samplings bounds the tries to take one.
	closeBy   = 20 * tolerance
	samplings = 4
)

func newClock() *clock {
	base := time.Now()
	return &clock{
		pair: func() (int64, int64) {
			now := time.Now()
			return now.UnixNano(), int64(now.Sub(base))
		},
		boot: alarm.Now,
	}
}

// now returns the reading in nanoseconds.
func (c *clock) now() int64 {
	wall, mono := c.pair()
	s := c.sample.Load()
	if s != nil {
		if moved := wall - mono - s.wallAhead; -tolerance <= moved && moved <= tolerance {
			return mono + s.bootAhead
		}
	}
	return c.ask()
}

// ask reads the clock by a system call, and takes a sample.
func (c *clock) ask() int64 {
	for range samplings {
		wall, mono := c.pair()
		boot := c.boot()
		_, after := c.pair()
		// A suspend between the readings adds to boot and not to wall, so the next reading
		// finds the difference changed. Any other delay makes boot too late for mono, and
		// leases shorter.
		if after-mono <= closeBy {
			c.sample.Store(&sample{wallAhead: wall - mono, bootAhead: boot - mono})
			return boot
		}
	}
	return c.boot() // the machine is busy: the next reading tries again to take a sample
}
