package failuredetector

import (
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	// sigmas is how many standard deviations above the mean an interval becomes suspect. A normally
	// distributed interval is longer with probability 10^-8: phi is 8 (Hayashibara 2004, section
	// 4.2). So a healthy agent is suspected once in 10^8 heartbeats.
	sigmas = 5.612001
	window = 200 // how many intervals are remembered
	// Standard deviations, as parts of a heartbeat.
	minDeviation   = 0.1  // a lower limit: after very regular arrivals, even a small delay would be suspect without it
	priorDeviation = 0.25 // assumed before the first heartbeat, as in Akka
)

// Detector judges one agent by its heartbeats.
//
// Invariant: there are 2 to 200 (window) intervals, each from 0 to the lease.
type Detector struct {
	heartbeat time.Duration // the interval at which that agent sends
	lease     time.Duration // a longer silence is always suspect; at least two heartbeats

	watching  bool
	heardAt   election.Instant
	intervals []time.Duration // the newest ones; a ring buffer once it has its full length (window)
	oldest    int             // the index of the oldest interval in the ring buffer
	deadline  election.Instant
}

// New returns a detector that has not heard a heartbeat yet. It starts with two assumed intervals,
// one below and one above the heartbeat.
func New(heartbeat, lease time.Duration) *Detector {
	spread := time.Duration(float64(heartbeat) * priorDeviation)
	return &Detector{heartbeat: heartbeat, lease: lease, deadline: election.Never,
		intervals: []time.Duration{heartbeat - spread, heartbeat + spread}}
}

func (d *Detector) Heard(now election.Instant) {
	switch {
	case !d.watching:
		d.watching = true
	case now < d.heardAt:
		return
	default:
		// A longer silence counts as a lease. Otherwise the long silence of a suspended host
		// would outweigh all that is observed afterwards.
		d.remember(min(now.Sub(d.heardAt), d.lease))
	}
	d.heardAt = now
	d.deadline = now.Add(d.patience())
}

// Deadline is when suspicion starts if no more heartbeats arrive. It is Never before the first
// heartbeat, and for a nil detector.
func (d *Detector) Deadline() election.Instant {
	if d == nil {
		return election.Never
	}
	return d.deadline
}

// patience is how long a silence may last without suspicion.
func (d *Detector) patience() time.Duration {
	mean, deviation := d.estimate()
	// The value is bounded before the conversion, which could overflow otherwise.
	accrued := math.Min(math.Ceil(mean+sigmas*deviation), float64(d.lease))
	return max(time.Duration(accrued), 2*d.heartbeat)
}

func (d *Detector) remember(interval time.Duration) {
	if len(d.intervals) < window {
		d.intervals = append(d.intervals, interval)
		return
	}
	d.intervals[d.oldest] = interval
	d.oldest = (d.oldest + 1) % window
}

// estimate computes mean and deviation from all intervals each time, so that rounding errors do not add up.
func (d *Detector) estimate() (mean, deviation float64) {
	count, sum, squares := float64(len(d.intervals)), 0.0, 0.0
	for _, i := range d.intervals {
		sum += float64(i)
	}
	mean = sum / count
	for _, i := range d.intervals {
		squares += (float64(i) - mean) * (float64(i) - mean)
	}
	return mean, max(math.Sqrt(squares/count), minDeviation*float64(d.heartbeat))
}
