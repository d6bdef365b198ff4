package exhaustive

import (
	"flag"
	"fmt"
	"testing"
)

var rosterStates = flag.Int("rosterstates", 0, "how many states each exploration of a change of the voters visits; 0: see -whole")

// stoppedHalfway are the steps to a driver that stopped when the first of the new
// voters had heard that they decide alone. What another ballot may do then lies
// deeper than a search from the start gets.
var stoppedHalfway = []string{
	"c seeks ballot 1 at {0 1}", "b votes for ballot 1", "c votes for ballot 1",
	"c goes on", "a accepts v1.0 joint a,b,c + a,b,d floor 0", "b accepts v1.0 joint a,b,c + a,b,d floor 0", "d accepts v1.0 joint a,b,c + a,b,d floor 0",
	"c goes on", "a accepts v1.1 joint a,b,c + a,b,d floor 0 (committed)", "b accepts v1.1 joint a,b,c + a,b,d floor 0 (committed)", "d accepts v1.1 joint a,b,c + a,b,d floor 0 (committed)",
	"c goes on", "a accepts v1.2 stable a,b,d floor 0",
}

// TestEveryOrderOfARosterChange shows that no order of events within the bounds
// leaves the former and the new voters deciding beside each other (R1 to R3, R9
// to R13).
func TestEveryOrderOfARosterChange(t *testing.T) {
	for _, try := range []RosterOptions{
		{From: "a", To: "ab", Ballots: 2, States: 60_000},
		{From: "a", To: "ab", Ballots: 3, States: 40_000},
		{From: "ab", To: "abc", Ballots: 2, States: 60_000}, // complete with 335,203 states, -rosterstates 400000
		{From: "abc", To: "abd", Ballots: 2, States: 30_000},
		{From: "abc", To: "abd", Ballots: 2, States: 30_000, After: stoppedHalfway},
	} {
		if *rosterStates > 0 {
			try.States = *rosterStates
		} else if !*whole || raceDetector {
			try.States /= 10
		}
		t.Run(fmt.Sprintf("%s to %s, %d ballots, after %d steps", try.From, try.To, try.Ballots, len(try.After)), func(t *testing.T) {
			r := ExploreRoster(try)
			t.Log(r)
			if r.Violation != nil {
				t.Fail()
			}
		})
	}
}
