package exhaustive

import (
	"fmt"
	"testing"
)

// TestEveryOrderOfAChangeWithAWord shows that no order of messages within the bounds loses an acknowledged word
// while one voter is replaced, added or removed (W9). No world is whole within its states: what each run shows is the
// depth that it logs. Without the driver's wait for those that catch up, 7 steps lose the word.
func TestEveryOrderOfAChangeWithAWord(t *testing.T) {
	limit := 10_000
	if *whole {
		limit = 50_000
	}
	worlds := []ChangeOptions{{From: "abc", To: "abd"}, {From: "abc", To: "abcd"}, {From: "abcd", To: "abd"}}
	if *wordStates > 0 {
		limit = *wordStates / 5 // a state costs about five times as much as one of TestEveryOrderOfWrites
		for _, o := range worlds[:3] {
			o.Writes = true
			worlds = append(worlds, o)
			o.Loses, o.Early = true, true
			worlds = append(worlds, o)
		}
	}
	for _, o := range worlds {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			t.Parallel()
			o.States = limit
			r := ExploreChange(o)
			t.Log(r)
			if r.Violation != nil {
				t.Fail()
			}
		})
	}
}
