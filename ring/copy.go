package ring

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Clone returns a copy that shares nothing that changes.
func (r *Ring) Clone() *Ring {
	n := *r
	n.holders, n.hops, n.passages = slices.Clone(r.holders), slices.Clone(r.hops), slices.Clone(r.passages)
	return &n
}

// Outlook is all that matters to what it does from now on, in a form to print. Instants
// count from now, and those that have passed are 0.
func (r *Ring) Outlook(now election.Instant) any {
	n := r.Clone()
	election.CountFrom(now, 0, &n.until)
	for i := range n.hops {
		election.CountFrom(now, 0, &n.hops[i].until)
	}
	return *n
}
