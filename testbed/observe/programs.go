package observe

import (
	"cmp"
	"slices"
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
