package scenario

import (
	"errors"
	"slices"
	"testing"
)

func TestAScriptIsPlayedUntilAPlayDecides(t *testing.T) {
	still := Result{Excuse: "the machine stood still"}
	for name, test := range map[string]struct {
		plays     []Result
		passed    bool
		undecided int
	}{
		"it passes":                        {[]Result{{Passed: true}}, true, 0},
		"it fails and nothing excuses it":  {[]Result{{}, {Passed: true}}, false, 0},
		"a play decides nothing, one does": {[]Result{still, {Passed: true}}, true, 1},
		"the next one fails by itself":     {[]Result{still, {}, {Passed: true}}, false, 1},
		"none decides":                     {slices.Repeat([]Result{still}, maxPlays), false, maxPlays - 1},
	} {
		t.Run(name, func(t *testing.T) {
			next := 0
			r, err := untilDecided(func() (Result, error) {
				next++
				return test.plays[next-1], nil
			})
			if err != nil || r.Passed != test.passed || len(r.Undecided) != test.undecided {
				t.Errorf("passed %t after %d undecided plays (%v), want %t after %d", r.Passed, len(r.Undecided), err, test.passed, test.undecided)
			}
		})
	}
}

func TestAScriptThatCantBePlayedIsNotPlayedAgain(t *testing.T) {
	plays := 0
	_, err := untilDecided(func() (Result, error) {
		plays++
		return Result{Excuse: "the machine stood still"}, errors.New("interrupted")
	})
	if err == nil || plays != 1 {
		t.Errorf("%d plays, %v", plays, err)
	}
}
