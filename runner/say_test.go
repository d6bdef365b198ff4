package runner

import (
	"errors"
	"slices"
	"testing"
)

// An agent that stays away is complained of once, and again for another reason
// or after it had been there.
func TestWhatKeepsItFromStandingIsToldOnce(t *testing.T) {
	lines := make(chan string, 8)
	r := &runner{Config: Config{Election: "payments", lines: lines}, met: true}
	away, busy := errors.New("there is no socket"), errors.New("too many campaigns")
	for _, err := range []error{away, away, busy, busy, away} {
		r.take(standing{err: err})
	}
	r.complaint = "" // as after it stood
	r.take(standing{err: away})
	close(lines)
	want := []string{
		"can't be a candidate in payments: there is no socket; trying again",
		"can't be a candidate in payments: too many campaigns; trying again",
		"can't be a candidate in payments: there is no socket; trying again",
		"can't be a candidate in payments: there is no socket; trying again",
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for line := range lines {
			if !yield(line) {
				return
			}
		}
	}); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}
