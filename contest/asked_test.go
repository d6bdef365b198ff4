package contest

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

func TestTermsAskedForAreKeptInBoundedRoom(t *testing.T) {
	var a asked
	seen := map[election.Term]bool{}
	x := uint64(1)
	for range 2000 {
		x = x*6364136223846793005 + 1442695040888963407
		term := a.after(election.Term(x >> (3 + x%60)))
		if seen[term] {
			t.Fatalf("%d again: %+v", term, a.spans)
		}
		seen[term] = true
		a.add(term)
		for i := range a.spans {
			if s := a.spans[i]; s.first > s.last || i > 0 && s.first <= a.spans[i-1].last || len(a.spans) > maxSpans {
				t.Fatalf("spans %+v", a.spans)
			}
		}
	}
}
