package failuredetector

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Policy is how the silence of an agent is judged.
type Policy uint8

const (
	PhiAccrual    Policy = iota // suspects when the observed intervals make the silence unlikely
	FixedDeadline               // suspects after Config.Deadline of silence
)

const (
	// DefaultThreshold is the phi at which an agent is suspected. With normally distributed
	// arrivals, a healthy agent is suspected once in 10^8 heartbeats.
	DefaultThreshold = 8.0
	Window           = 200 // intervals that are remembered
	MinIntervals     = 2   // heartbeat intervals of silence that are never suspect

	minThreshold, maxThreshold = 1.0, 100.0
	// Deviations, as parts of a heartbeat.
	minDeviation   = 0.1  // else a small delay after very regular arrivals would be suspect
	priorDeviation = 0.25 // assumed before the first heartbeat, as Akka does
)

type Config struct {
	Heartbeat time.Duration // the interval at which the other agent sends
	Lease     time.Duration // the longest silence that is not suspect
	Policy    Policy
	Threshold float64       // of phi, 1 to 100; 0: DefaultThreshold
	Deadline  time.Duration // of FixedDeadline, from MinIntervals heartbeats to a lease
}

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

// Detector judges one agent.
//
// Invariant: intervals holds 2 to Window values, each from 0 to the lease.
type Detector struct {
	config Config
	sigmas float64 // how many deviations above the mean phi reaches the threshold

	watching  bool
	heardAt   election.Instant
	intervals []time.Duration // the newest; a ring of Window once it is full
	oldest    int             // index of the oldest interval, once the ring is full
	mean      float64         // nanoseconds
	deviation float64         // nanoseconds, at least minDeviation heartbeats
	deadline  election.Instant
}

// New returns a detector that has heard nothing yet.
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

func (d *Detector) Heard(now election.Instant) {
	switch {
	case !d.watching:
		d.watching = true
	case now < d.heardAt:
		return
	default:
		// The silence is bounded, so that a long one of a suspended host does not outweigh
		// what is observed afterwards.
		d.remember(min(now.Sub(d.heardAt), d.config.Lease))
		d.estimate()
	}
	d.heardAt = now
	d.deadline = now.Add(d.patience())
}

// Suspects reports whether the agent has been silent for too long.
func (d *Detector) Suspects(now election.Instant) bool { return now >= d.deadline }

// Deadline is when suspicion begins if nothing more is heard. It is Never before the first
// heartbeat, and for a nil detector.
func (d *Detector) Deadline() election.Instant {
	if d == nil {
		return election.Never
	}
	return d.deadline
}

// patience is how long a silence may last without suspicion.
func (d *Detector) patience() time.Duration {
	if d.config.Policy == FixedDeadline {
		return d.config.Deadline
	}
	// It is bounded before the conversion, which could overflow.
	accrued := math.Min(math.Ceil(d.mean+d.sigmas*d.deviation), float64(d.config.Lease))
	return max(time.Duration(accrued), MinIntervals*d.config.Heartbeat)
}
