package failuredetector

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Policy is how silence is judged.
type Policy uint8

const (
	// PhiAccrual suspects when the observed intervals make the silence unlikely.
	PhiAccrual Policy = iota
	// FixedDeadline suspects after Config.Deadline of silence.
	FixedDeadline
)

const (
	// DefaultThreshold is the phi at which suspicion begins: a healthy agent is
	// suspected once in 10^8 heartbeats, if arrivals are normally distributed.
	DefaultThreshold = 8.0
	// Window is how many of the newest intervals are remembered.
	Window = 200
	// MinIntervals is how many heartbeat intervals of silence are never suspect.
	MinIntervals = 2

	minThreshold, maxThreshold = 1.0, 100.0
	// minDeviation, as a part of the heartbeat, keeps very regular arrivals from
	// making every jitter suspect.
	minDeviation = 0.1
	// priorDeviation, as a part of the heartbeat, is assumed of an agent that was
	// not heard yet. Akka starts the same way.
	priorDeviation = 0.25
)

// Config is what a detector does not change while it runs.
type Config struct {
	Heartbeat time.Duration // the interval at which the other agent sends
	Lease     time.Duration // silence is suspect after it at the latest
	Policy    Policy
	Threshold float64       // of phi, 1 to 100; 0: DefaultThreshold
	Deadline  time.Duration // of FixedDeadline, from MinIntervals heartbeats to a lease
}

// Validate states the inequalities the bounds rest on.
func (c Config) Validate() error {
	least := MinIntervals * c.Heartbeat
	switch {
	case c.Heartbeat <= 0:
		return fmt.Errorf("validate failure detector config: heartbeat %s must be above 0", c.Heartbeat)
	case least < c.Heartbeat || c.Lease < least:
		return fmt.Errorf("validate failure detector config: lease %s must be at least %d heartbeats of %s", c.Lease, MinIntervals, c.Heartbeat)
	case c.Policy > FixedDeadline:
		return errors.New("validate failure detector config: unknown policy")
	case c.Policy == FixedDeadline && (c.Deadline < least || c.Deadline > c.Lease):
		return fmt.Errorf("validate failure detector config: deadline %s is not between %s and lease %s", c.Deadline, least, c.Lease)
	case c.Threshold != 0 && !(c.Threshold >= minThreshold && c.Threshold <= maxThreshold):
		return fmt.Errorf("validate failure detector config: threshold %g is not between %g and %g", c.Threshold, minThreshold, maxThreshold)
	}
	return nil
}

// Detector judges one agent. It is not safe for concurrent use.
//
// Invariant: intervals holds 2 to Window values, each from 0 to the lease.
type Detector struct {
	config Config
	sigmas float64 // how many deviations above the mean phi meets the threshold

	watching  bool
	heardAt   election.Instant
	intervals []time.Duration // the newest; a ring of Window once it is full
	oldest    int             // index of the oldest, once it is full
	mean      float64         // nanoseconds
	deviation float64         // nanoseconds, at least minDeviation heartbeats
	deadline  election.Instant
}

// New returns a detector that watches nobody yet. It fails on an invalid
// configuration.
func New(c Config) (*Detector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Threshold == 0 {
		c.Threshold = DefaultThreshold
	}
	d := &Detector{config: c, sigmas: deviationsAt(c.Threshold), deadline: election.Never}
	d.prior()
	return d, nil
}

// Heard takes note of a heartbeat. The first one begins the watch.
func (d *Detector) Heard(now election.Instant) {
	switch {
	case !d.watching:
		d.watching = true
	case now < d.heardAt:
		return
	default:
		// A silence as long as the lease says all that can be said: longer ones,
		// of a suspended host, must not outweigh what is observed afterwards.
		d.remember(min(now.Sub(d.heardAt), d.config.Lease))
		d.estimate()
	}
	d.heardAt = now
	d.deadline = now.Add(d.patience())
}

// Suspects reports whether the agent was silent for too long. A detector that
// watches nobody suspects nobody.
func (d *Detector) Suspects(now election.Instant) bool { return now >= d.deadline }

// Deadline is the instant at which suspicion begins if nothing more is heard;
// Never while nobody is watched.
func (d *Detector) Deadline() election.Instant { return d.deadline }

// patience is how long a silence is trusted.
func (d *Detector) patience() time.Duration {
	if d.config.Policy == FixedDeadline {
		return d.config.Deadline
	}
	// Bounded as a float first, so that the conversion can't overflow.
	accrued := math.Min(math.Ceil(d.mean+d.sigmas*d.deviation), float64(d.config.Lease))
	return max(time.Duration(accrued), MinIntervals*d.config.Heartbeat)
}
