package failuredetector

import (
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	// sigmas is how many deviations above the mean an interval is suspect. There phi, -log10 of the
	// probability that a normally distributed value lies farther above, is 8 (Hayashibara 2004,
	// section 4.2): a healthy agent is suspected once in 10^8 heartbeats.
	sigmas = 5.612001
	window = 200 // intervals that are remembered
	// Deviations, as parts of a heartbeat.
	minDeviation   = 0.1  // else a small delay after very regular arrivals would be suspect
	priorDeviation = 0.25 // assumed before the first heartbeat, as Akka does
)

// Detector judges one agent.
//
// Invariant: intervals holds 2 to window values, each from 0 to the lease.
type Detector struct {
	heartbeat time.Duration // the interval at which the other agent sends
	lease     time.Duration // the longest silence that is not suspect; at least two heartbeats

	watching  bool
	heardAt   election.Instant
	intervals []time.Duration // the newest; a ring of window once it is full
	oldest    int             // index of the oldest interval, once the ring is full
	deadline  election.Instant
}

// New returns a detector that has heard nothing yet. Before anything is observed it assumes two
// intervals around the heartbeat.
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
		// The silence is bounded, so that a long one of a suspended host does not outweigh
		// what is observed afterwards.
		d.remember(min(now.Sub(d.heardAt), d.lease))
	}
	d.heardAt = now
	d.deadline = now.Add(d.patience())
}

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
	mean, deviation := d.estimate()
	// It is bounded before the conversion, which could overflow.
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

// estimate computes mean and deviation from all intervals, so that no rounding errors add up.
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
