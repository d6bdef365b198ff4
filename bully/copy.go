package bully

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Clone returns a copy that shares nothing that changes.
func (b *Bully) Clone() *Bully {
	n := *b
	n.peers, n.deferring = slices.Clone(b.peers), slices.Clone(b.deferring)
	return &n
}

// Outlook is all that matters to what it does from now on, in a form to print. Instants
// count from now, and those that have passed are 0.
func (b *Bully) Outlook(now election.Instant) any {
	n := b.Clone()
	election.CountFrom(now, 0, &n.until)
	for i := range n.deferring {
		election.CountFrom(now, 0, &n.deferring[i].until)
	}
	return *n
}
