package exhaustive

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var rosterStates = flag.Int("rosterstates", 0, "how many states each exploration of a change of the voters visits; 0: as many as fit a short run")

// TestEveryOrderOfARosterChange shows that no order of events within the bounds
// leaves the former and the new voters deciding beside each other (R1 to R3, R9
// to R13).
func TestEveryOrderOfARosterChange(t *testing.T) {
	for _, try := range []RosterOptions{
		{From: "a", To: "ab", Ballots: 2, States: 60_000},
		{From: "a", To: "ab", Ballots: 3, States: 40_000},
		{From: "ab", To: "abc", Ballots: 2, States: 60_000}, // complete with 335,203 states, -rosterstates 400000
		{From: "abc", To: "abd", Ballots: 2, States: 30_000},
	} {
		if *rosterStates > 0 {
			try.States = *rosterStates
		} else if testing.Short() || raceDetector {
			try.States /= 10
		}
		t.Run(fmt.Sprintf("%s to %s, %d ballots", try.From, try.To, try.Ballots), func(t *testing.T) {
			r := ExploreRoster(try)
			t.Log(r)
			if r.Violation != nil {
				t.Fatalf("%v\n%s", r.Violation, strings.Join(r.Path, "\n"))
			}
		})
	}
}
