package exhaustive

import (
	"flag"
	"fmt"
	"testing"
)

var wordStates = flag.Int("wordstates", 0, "how many states each exploration of a word visits; 0: a small world, whole")

// TestEveryOrderOfWrites shows that no order of messages within the bounds loses a word that a program
// has written or got, or lets two writes replace the same word (W1, W3 to W6, W11).
func TestEveryOrderOfWrites(t *testing.T) {
	for _, o := range []WordOptions{
		{Terms: []string{"writes", "writes", "reads"}, Holders: 2, Loses: true},
		{Terms: []string{"writes", "writes", "reads"}, Holders: 2},
		{Terms: []string{"writes", "deletes", "reads"}, Holders: 2},
	} {
		o.States = 3_000_000
		if *wordStates > 0 {
			o.States = *wordStates
		}
		t.Run(fmt.Sprint(o.Terms), func(t *testing.T) {
			r := ExploreWords(o)
			t.Log(r)
			if r.Violation != nil || !r.Complete {
				t.Fail()
			}
		})
	}
}
