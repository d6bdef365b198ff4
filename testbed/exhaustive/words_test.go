package exhaustive

import (
	"flag"
	"fmt"
	"testing"
)

var wordStates = flag.Int("wordstates", 0, "how many states each exploration of a word visits, in larger worlds; 0: small worlds, whole with -whole")

// TestEveryOrderOfWrites shows that no order of messages within the bounds loses a word that a program
// has written or got, or lets two writes replace the same word (W1 to W7, W11).
func TestEveryOrderOfWrites(t *testing.T) {
	worlds := []WordOptions{
		{Terms: []string{"writes", "writes", "reads"}, Holders: 2, Loses: true},
		{Terms: []string{"writes", "deletes", "reads"}, Holders: 2},
		{Terms: []string{"writes", "reads"}, Holders: 2, Rosters: true},
		{Terms: []string{"writes", "reads"}, Holders: 2, Loses: true, Slow: true},
		{Terms: []string{"writes", "reads"}, Holders: 2, Loses: true, Lives: true},
	}
	limit := 2_000_000
	if !*whole || raceDetector {
		limit = 20_000
	}
	if *wordStates > 0 {
		limit = *wordStates
		worlds = []WordOptions{
			{Terms: []string{"writes", "writes", "reads"}, Holders: 3, Loses: true},
			{Terms: []string{"writes", "writes", "writes"}, Holders: 2, Loses: true},
			{Terms: []string{"writes", "deletes", "reads"}, Holders: 2, Loses: true},
			{Terms: []string{"writes", "writes", "deletes", "reads"}, Holders: 2},
			{Terms: []string{"writes", "writes"}, Holders: 2, Loses: true, Rosters: true},
			{Terms: []string{"writes", "deletes", "reads"}, Holders: 2, Rosters: true},        // not whole with 5,000,000 states
			{Terms: []string{"writes", "writes", "writes", "reads"}, Holders: 2, Loses: true}, // nor this one
		}
	}
	for _, o := range worlds {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			t.Parallel()
			o.States = limit
			r := ExploreWords(o)
			t.Log(r)
			if r.Violation != nil {
				t.Fail()
			}
			if !r.Complete && limit == 2_000_000 {
				t.Error("states were left when the search ended")
			}
		})
	}
}
