package spacetime

import (
	"math"
	"slices"
	"sort"
	"time"
)

const (
	lineHeight = 15.0 // pixels, of a line of text
	leastGap   = 4.0  // at least, between two different moments
	decade     = 16.0 // more height for ten times as long
)

// axis maps times to heights: in order, but not to scale.
type axis struct {
	times   []time.Duration
	heights []float64
	rows    []float64 // of the lines of text
}

// newAxis gives every line of text a row of its own, at the height of its time or, if there is
// no room, below.
func newAxis(d Diagram, lines []Line, top float64) axis {
	times := []time.Duration{d.From, d.To}
	add := func(ts ...time.Duration) {
		for _, t := range ts {
			if t >= d.From && t <= d.To {
				times = append(times, t)
			}
		}
	}
	for _, a := range d.Arrows {
		if !a.Quiet {
			add(a.Sent, a.Came)
		}
	}
	for _, b := range d.Bars {
		add(b.From, b.To, b.Lease)
	}
	for _, s := range slices.Concat(d.Lives, d.Pauses) {
		add(s.From, s.To)
	}
	for _, l := range lines {
		add(l.At)
	}
	slices.Sort(times)
	a := axis{times: slices.Compact(times)}
	next, row := 0, top
	y := top
	for i, t := range a.times {
		if i > 0 {
			ms := (t - a.times[i-1]).Seconds() * 1000
			y += leastGap + decade*math.Log10(1+ms)
		}
		if next < len(lines) && lines[next].At == t {
			y = max(y, row)
		}
		a.heights = append(a.heights, y)
		for ; next < len(lines) && lines[next].At == t; next++ {
			row = max(row, y)
			a.rows = append(a.rows, row)
			row += lineHeight
		}
	}
	return a
}

// y returns the height of a time.
func (a axis) y(t time.Duration) float64 {
	last := len(a.times) - 1
	switch {
	case t <= a.times[0]:
		return a.heights[0]
	case t >= a.times[last]:
		return a.heights[last]
	}
	i := sort.Search(len(a.times), func(i int) bool { return a.times[i] >= t })
	from, to := a.times[i-1], a.times[i]
	part := float64(t-from) / float64(to-from)
	return a.heights[i-1] + part*(a.heights[i]-a.heights[i-1])
}

// bottom is the height of the last moment or of the last row, whichever is further down.
func (a axis) bottom() float64 {
	y := a.heights[len(a.heights)-1]
	if n := len(a.rows); n > 0 {
		y = max(y, a.rows[n-1])
	}
	return y
}
