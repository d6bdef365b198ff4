package report

import (
	"slices"

	"gonum.org/v1/plot/plotter"
)

// ecdf returns the corners of the empirical distribution, a staircase whose upper corner at x is
// the share of the samples that are at most x. Without samples there are no corners.
func ecdf(samples []float64) plotter.XYs {
	sorted := slices.Sorted(slices.Values(samples))
	var corners plotter.XYs
	share := 0.0
	for i, x := range sorted {
		if i+1 < len(sorted) && sorted[i+1] == x {
			continue
		}
		corners = append(corners, plotter.XY{X: x, Y: share})
		share = float64(i+1) / float64(len(sorted))
		corners = append(corners, plotter.XY{X: x, Y: share})
	}
	return corners
}

// wide reports whether the samples span orders of magnitude, and so are best seen on a
// logarithmic axis.
func wide(all ...[]float64) bool {
	joined := slices.Concat(all...)
	if len(joined) == 0 {
		return false
	}
	low, high := slices.Min(joined), slices.Max(joined)
	return low > 0 && high/low > 30
}
