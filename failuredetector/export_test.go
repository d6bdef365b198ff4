package failuredetector

import "github.com/doyen-election/doyen/election"

// Phi is the accrued suspicion: -log10 of the probability that the next
// heartbeat is still to come.
func (d *Detector) Phi(now election.Instant) float64 {
	return phiAt((float64(now.Sub(d.heardAt)) - d.mean) / d.deviation)
}
