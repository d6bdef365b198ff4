package hosts

import "github.com/doyen-election/doyen/election"

// clock is how a host's CLOCK_BOOTTIME runs from an instant on. The zero value is the
// machine's own clock.
type clock struct {
	from election.Instant // of the machine's clock
	read election.Instant // what the host's clock showed at that instant
	rate float64
}

func (c clock) pace() float64 {
	if c.rate == 0 {
		return 1
	}
	return c.rate
}

// isTrue reports whether the clock shows the machine's time.
func (c clock) isTrue() bool { return c.rate == 0 || c.rate == 1 && c.from == c.read }

// at is what the host's clock shows at an instant of the machine's clock.
func (c clock) at(now election.Instant) election.Instant {
	if c.isTrue() {
		return now
	}
	return c.read + election.Instant(float64(now-c.from)*c.rate)
}

// real is the instant of the machine's clock at which the host's clock shows the given one.
func (c clock) real(shown election.Instant) election.Instant {
	if c.isTrue() {
		return shown
	}
	return c.from + election.Instant(float64(shown-c.read)/c.rate)
}
