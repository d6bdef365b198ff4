package hook

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestWhatWaitsIsBoundedOverAllElections: elections come and go faster than the
// command runs. The ends of this agent's own leaderships are never left out.
func TestWhatWaitsIsBoundedOverAllElections(t *testing.T) {
	r := &Runner{logger: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1)}
	r.Enqueue(Event{Election: "pay", Event: election.NoLeader, Term: 1, StopIn: time.Hour})
	left := make(chan struct{}, 3)
	for i := range maxWaiting + 2 {
		r.Enqueue(Event{Election: election.Name(fmt.Sprint("job", i)), Event: election.Following, Done: func() { left <- struct{}{} }})
	}
	if n := len(r.waiting); n != maxWaiting {
		t.Errorf("%d wait", n)
	}
	if e := r.waiting[0]; e.Election != "pay" {
		t.Errorf("the end of its own leadership was left out, for %s", e.Election)
	}
	for range 3 {
		<-left // whoever waits for an event that is left out waits no more
	}
	r.waiting[0].Done() // which stops its timer
}
