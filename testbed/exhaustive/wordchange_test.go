package exhaustive

import (
	"fmt"
	"testing"
)

// TestEveryOrderOfAChangeWithAWord shows that no order of messages within the bounds loses an acknowledged word
// while one voter is replaced, added or removed, or a second driver goes back (W9), and that a voter that is added
// again brings no deleted word back (W10). Only the worlds of W10 are whole: the others are visited to the depth that
// is logged. Without the driver's wait for those that catch up, 7 steps lose the word.
func TestEveryOrderOfAChangeWithAWord(t *testing.T) {
	limit := 10_000
	if *whole {
		limit = 50_000
	}
	worlds := []ChangeOptions{{From: "abc", To: "abd"}, {From: "abc", To: "abcd"}, {From: "abcd", To: "abd"}, {From: "abc", To: "abd", Back: true},
		{Before: "abc", From: "ab", To: "abc"}, {Before: "abcd", From: "ab", To: "abc"}, {Before: "abcd", From: "abd", To: "abcd"}}
	if *wordStates > 0 {
		limit = *wordStates / 5 // a state costs about five times as much as one of TestEveryOrderOfWrites
		for _, o := range worlds {
			if o.Writes = !o.Back && o.Before == ""; o.Writes {
				worlds = append(worlds, o)
			}
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
			if r.Violation != nil || o.Before != "" && !o.Loses && !r.Complete {
				t.Fail()
			}
		})
	}
}
