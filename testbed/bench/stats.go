package bench

import (
	"math"
	"slices"
)

// Summary is what is said of samples, in their unit.
type Summary struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summarise returns the summary of samples; all is 0 if there are none.
func Summarise(samples []float64) Summary {
	if len(samples) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	return Summary{
		N: len(sorted), Median: median(sorted), P99: percentile(sorted, 99),
		Min: sorted[0], Max: sorted[len(sorted)-1],
	}
}

// median of sorted samples, the mean of the two in the middle if there are two.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile returns the least of the sorted samples that at least p percent of
// them do not exceed (the nearest rank).
func percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
