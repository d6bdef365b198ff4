package failuredetector

import (
	"math"
	"time"
)

// phiAt is -log10 of the probability that a normally distributed value lies more than that
// number of deviations above its mean (Hayashibara 2004, section 4.2).
func phiAt(deviations float64) float64 {
	tail := 0.5 * math.Erfc(deviations/math.Sqrt2)
	return math.Max(0, -math.Log10(tail))
}

// deviationsAt inverts phiAt. It bisects, because math.Erfcinv is inexact where the tail is
// thin. It returns the upper end, where phi has reached the threshold.
func deviationsAt(threshold float64) float64 {
	low, high := 0.0, 25.0 // phiAt(25) is above 137
	for range 60 {
		if middle := (low + high) / 2; phiAt(middle) < threshold {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

func (d *Detector) remember(interval time.Duration) {
	if len(d.intervals) < Window {
		d.intervals = append(d.intervals, interval)
		return
	}
	d.intervals[d.oldest] = interval
	d.oldest = (d.oldest + 1) % Window
}

// prior fills the window with what is assumed before anything is observed: two intervals
// around the heartbeat.
func (d *Detector) prior() {
	spread := time.Duration(float64(d.config.Heartbeat) * priorDeviation)
	d.intervals = []time.Duration{d.config.Heartbeat - spread, d.config.Heartbeat + spread}
	d.oldest = 0
	d.estimate()
}

// estimate computes mean and deviation from all intervals, so that no rounding errors add up.
func (d *Detector) estimate() {
	count, sum, squares := float64(len(d.intervals)), 0.0, 0.0
	for _, i := range d.intervals {
		sum += float64(i)
	}
	d.mean = sum / count
	for _, i := range d.intervals {
		squares += (float64(i) - d.mean) * (float64(i) - d.mean)
	}
	least := minDeviation * float64(d.config.Heartbeat)
	d.deviation = max(math.Sqrt(squares/count), least)
}
