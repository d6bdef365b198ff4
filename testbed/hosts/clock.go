package hosts

import "github.com/doyen-election/doyen/election"

// clock is how a host's CLOCK_BOOTTIME runs from an instant on. The zero value
// is the machine's own.
type clock struct {
	from election.Instant // of the machine's clock
	read election.Instant // what it showed then
	rate float64
}

func (c clock) pace() float64 {
	if c.rate == 0 {
		return 1
	}
	return c.rate
}

// isTrue reports the machine's own clock.
func (c clock) isTrue() bool { return c.rate == 0 || c.rate == 1 && c.from == c.read }

// at is what the clock shows at an instant of the machine's.
func (c clock) at(now election.Instant) election.Instant {
	if c.isTrue() {
		return now
	}
	return c.read + election.Instant(float64(now-c.from)*c.rate)
}

// real is the machine's instant at which the clock shows that.
func (c clock) real(shown election.Instant) election.Instant {
	if c.isTrue() {
		return shown
	}
	return c.from + election.Instant(float64(shown-c.read)/c.rate)
}
