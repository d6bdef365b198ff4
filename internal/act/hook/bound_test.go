package hook

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// stuck returns a runner in which a run of one election never ends, and all shared places are taken.
func stuck(of election.Name, named ...election.Name) *Runner {
	r := &Runner{logger: slog.New(slog.DiscardHandler), running: map[election.Name]*task{of: {}}, shared: sharedPlaces}
	commands := Commands{Of: map[election.Name]string{}}
	for _, name := range named {
		commands.Of[name] = "true"
	}
	r.commands.Store(&commands)
	return r
}

// Elections come and go faster than the command runs. The ends of this agent's own leaderships are never
// skipped. Events of named elections are skipped only if no others are left.
func TestWhatWaitsIsBoundedOverAllElections(t *testing.T) {
	r := stuck("default")
	r.Enqueue(Event{Election: "default", Event: election.Following, Term: 1})
	r.Enqueue(Event{Election: "pay", Event: election.NoLeader, Term: 1, StopIn: time.Hour})
	left := make(chan struct{}, 4)
	for i := range maxWaiting + 2 {
		r.Enqueue(Event{Election: election.Name(fmt.Sprint("job", i)), Event: election.Following, Done: func() { left <- struct{}{} }})
	}
	if n := len(r.waiting); n != maxWaiting {
		t.Errorf("%d wait", n)
	}
	if r.waiting[0].Election != "default" || r.waiting[1].Election != "pay" {
		t.Errorf("left out: one of its own leadership, or of an election that is named; first wait %s and %s", r.waiting[0].Election, r.waiting[1].Election)
	}
	for range 4 {
		<-left // the Done of a skipped event is called
	}
	r.waiting[1].Done() // stops the event's timer
}

// Waiting events run in the order of their importance. Within an election, they run in the order in which they
// came.
func TestTheEndsOfOwnLeadershipsGoFirst(t *testing.T) {
	r := stuck("busy", "busy", "pay", "ledger")
	r.shared = 0
	r.running = map[election.Name]*task{"busy": {}}
	r.waiting = append(r.waiting, []Event{
		{Election: "pay", Event: election.Following, Term: 1},
		{Election: "ledger", Event: election.Leading, Term: 2},
		{Election: "busy", Event: election.NoLeader, Term: 3, StopIn: time.Hour},
		{Election: "junk", Event: election.NoLeader, Term: 4, StopIn: time.Hour},
		{Election: "default", Event: election.NoLeader, Term: 5, StopIn: time.Hour},
		{Election: "default", Event: election.Leading, Term: 6},
	}...)
	var got []election.Term
	for i := r.nextUp(); i >= 0; i = r.nextUp() {
		got = append(got, r.waiting[i].Term)
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
	if want := []election.Term{4, 5, 2, 6, 1}; !slices.Equal(got, want) {
		t.Errorf("turns: %v, want %v, and 3 to wait for the run of its election", got, want)
	}
}

func TestElectionsThatAreNotNamedShareAFewPlaces(t *testing.T) {
	r := stuck("busy", "busy", "pay")
	if !r.hasPlace("pay") || !r.hasPlace("default") || r.hasPlace("junk") {
		t.Error("named elections have to wait for others, or others need not wait")
	}
	r.shared--
	if !r.hasPlace("junk") {
		t.Error("there is a place, and it is not given")
	}
}
