package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// ProgramOverlaps finds every stretch in which two processes acted for the same
// election, by their own stamps.
func ProgramOverlaps(spans []ProgramSpan) []OverlapSpan {
	sorted := slices.SortedStableFunc(slices.Values(spans), func(a, b ProgramSpan) int { return cmp.Compare(a.From, b.From) })
	var found []OverlapSpan
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if a.Election != b.Election || a.Program == b.Program && a.PID == b.PID {
				continue
			}
			if to := min(a.To, b.To); to > b.From {
				found = append(found, OverlapSpan{Election: a.Election, By: "programs", First: a.Program, Second: b.Program, From: b.From, To: to})
			}
		}
	}
	return found
}

// Pause returns the longest time, from one instant until another, in which none of the processes
// acted, and when that time began. The spans are in the order of their start.
func Pause(spans []ProgramSpan, from, until election.Instant) (longest time.Duration, at election.Instant) {
	acted := from
	gap := func(until election.Instant) {
		if d := until.Sub(acted); d > longest {
			longest, at = d, acted
		}
	}
	for _, s := range spans {
		if s.To > from {
			gap(s.From)
			acted = max(acted, s.To)
		}
	}
	gap(until)
	return longest, at
}
