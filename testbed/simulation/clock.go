package simulation

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// never is a true time that is never reached.
const never int64 = 1<<63 - 1

// million is the unit of clock rates: parts per million. They are integers, so that every
// machine computes the same.
const million = 1_000_000

// clock is one host's CLOCK_BOOTTIME. True time is in nanoseconds since the run began.
type clock struct {
	base  election.Instant // what the clock read at since
	since int64
	ppm   int64 // how much faster than true time it runs
	epoch int   // counts the host's boots: each one starts the clock again
}

// at reads the clock at a true time that is not before since.
func (c clock) at(t int64) election.Instant {
	dt := t - c.since
	return c.base + election.Instant(dt+dt*c.ppm/million)
}

// when returns the first true time at which the clock reads i or later; never
// if that is more than a day away.
func (c clock) when(i election.Instant) int64 {
	d := int64(i - c.base)
	if d <= 0 {
		return c.since
	}
	if i == election.Never || d > int64(24*time.Hour) {
		return never
	}
	t := c.since + int64(float64(d)/(million+float64(c.ppm))*million)
	for c.at(t) < i {
		t++
	}
	for t > c.since && c.at(t-1) >= i {
		t--
	}
	return t
}

// retime changes the rate from the true time t on.
func (c *clock) retime(t, ppm int64) {
	c.base, c.since, c.ppm = c.at(t), t, ppm
}

// reboot starts the clock again, at the instant base.
func (c *clock) reboot(t int64, base election.Instant) {
	c.base, c.since = base, t
	c.epoch++
}
