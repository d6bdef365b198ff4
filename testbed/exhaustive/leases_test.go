package exhaustive

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestSearchOfLeaseChanges looks for two holders that act at once while the lease changes, once or
// twice, up or down, to none and back (R14). It is not complete: with -whole, it visits 5,000 states of each case.
// They are all states within four steps, and some of the fifth. Then it walks 5,000 ways of at most 60 random steps.
func TestSearchOfLeaseChanges(t *testing.T) {
	for _, leases := range [][]int{{2, 1}, {1, 3}, {0, 1}, {0, 3}, {1, 0}, {3, 0}, {1, 3, 1}, {3, 1, 3}, {0, 1, 0}, {0, 3, 0}} {
		o := LeaseOptions{Leases: leases, Asked: 2, Until: 8, States: 5_000}
		if *states > 0 {
			o.States = *states
		} else if !*whole || raceDetector {
			o.States /= 10
		}
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			r := ExploreLeases(o)
			t.Log(r)
			if r.Violation == nil {
				r = WanderLeases(o, rand.New(rand.NewPCG(1, uint64(len(leases)))), o.States, 60)
				t.Logf("%d steps at random", r.States)
			}
			if r.Violation != nil {
				t.Fatal(r)
			}
			if r.Held == 0 {
				t.Error("nobody ever acted")
			}
		})
	}
}
