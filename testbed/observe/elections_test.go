package observe_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

const second = election.Instant(time.Second)

// line is a change of an agent's watch, at an instant in seconds.
func line(agent, of, leader string, term uint64, at election.Instant) observe.Changed {
	c := api.Change{Type: api.ChangeNoLeader, Election: of, Term: term, BoottimeNS: int64(at * second)}
	if leader != "" {
		c.Type, c.Leader, c.IsLeader = api.ChangeLeader, &api.Leader{Name: leader}, leader == agent
	}
	return observe.Changed{Agent: agent, Change: c}
}

func polled(agent, of, state string, term uint64, at election.Instant) observe.Polled {
	return observe.Polled{Agent: agent, Sent: at * second, Received: at * second,
		Election: api.Election{Election: of, State: state, Term: term}}
}

func TestElectionsAreKeptApart(t *testing.T) {
	e := observe.NewElections(10 * time.Second)
	e.Apply(line("a", "default", "a", 1, 1))
	e.Apply(line("b", "payments", "b", 1, 2))
	e.Apply(line("a", "payments", "b", 1, 3))
	if got := e.Names(); !reflect.DeepEqual(got, []string{"default", "payments"}) {
		t.Errorf("elections %v", got)
	}
	if found := e.Overlaps(9 * second); len(found) != 0 {
		t.Errorf("leaders of two elections overlap: %+v", found)
	}
	e.Apply(line("a", "payments", "a", 2, 4))
	found := e.Overlaps(9 * second)
	if len(found) != 1 || found[0].Election != "payments" || found[0].From != 4*second || found[0].To != 9*second || found[0].By != "agents" {
		t.Errorf("overlaps %+v, want one of payments from 4 s until now", found)
	}
}

func TestATimelineHasNoGapAndNoStateTwice(t *testing.T) {
	e := observe.NewElections(10 * time.Second)
	e.Started("a", 1*second)
	e.Apply(line("a", "default", "", 0, 2))
	e.Apply(line("a", "default", "a", 1, 3))
	e.Apply(line("a", "default", "a", 1, 3))
	e.Apply(line("a", "default", "", 1, 5))
	e.Apply(polled("a", "default", api.StateNoQuorum, 1, 6))
	e.Exited("a", 7*second)
	e.Started("a", 8*second)
	e.Apply(line("a", "default", "b", 2, 9))
	want := []observe.StateSpan{
		{State: observe.StateDown, From: 1, To: 2},
		{State: "", From: 2, To: 3},
		{State: api.StateLeading, Leader: "a", Term: 1, From: 3, To: 5},
		{State: api.StateElecting, Term: 1, From: 5, To: 6},
		{State: api.StateNoQuorum, Term: 1, From: 6, To: 7},
		{State: observe.StateDown, From: 7, To: 9},
		{State: api.StateFollowing, Leader: "b", Term: 2, From: 9, To: 11},
	}
	for i := range want {
		want[i].Election, want[i].From, want[i].To = "default", want[i].From*second, want[i].To*second
	}
	if got := e.Spans("a", 11*second); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v\nwant\n%+v", got, want)
	}
}

func TestALineThatArrivesAfterTheEndOfItsProcessEndsTheClaim(t *testing.T) {
	e := observe.NewElections(10 * time.Second)
	e.Apply(line("a", "default", "a", 1, 1))
	e.Exited("a", 3*second)
	e.Apply(line("a", "default", "", 1, 2)) // it handed over, and ended
	e.Apply(line("b", "default", "b", 2, 4))
	if found := e.Overlaps(9 * second); len(found) != 0 {
		t.Errorf("an agent that said it stopped still overlaps: %+v", found)
	}
	e.Apply(line("b", "default", "", 2, 5))
	e.Apply(line("c", "default", "c", 3, 6))
	e.Exited("c", 7*second)
	e.Apply(line("c", "default", "", 3, 8)) // another process of that name
	e.Apply(line("b", "default", "b", 4, 9))
	if found := e.Overlaps(20 * second); len(found) != 1 || found[0].First != "c" || found[0].Second != "b" {
		t.Errorf("%+v, want the killed one's lease to count on", found)
	}
}

func TestATakeoverHasItsGapAndItsCause(t *testing.T) {
	e := observe.NewElections(10 * time.Second)
	e.Apply(line("a", "default", "a", 1, 1))
	e.Apply(line("a", "default", "", 1, 5))
	e.Apply(line("b", "default", "b", 2, 7))
	faults := []observe.Fault{
		{What: "freeze", Where: []string{"b"}, From: 4 * second},
		{What: "cut", Where: []string{"a"}, Peers: []string{"b"}, From: 3 * second},
		{What: "crash", Where: []string{"a"}, From: 8 * second},
	}
	want := []observe.Takeover{
		{Election: "default", After: "a", Term: 1, At: 1 * second},
		{Election: "default", Before: "a", After: "b", Term: 2, At: 7 * second, Gap: int64(2 * second), Cause: "cut", Took: int64(4 * second)},
	}
	if got := e.Takeovers(faults); !reflect.DeepEqual(got, want) {
		t.Errorf("takeovers\n%+v\nwant\n%+v", got, want)
	}
}

func TestALeaderThatTakesAHigherTermGoesOn(t *testing.T) {
	e := observe.NewElections(10 * time.Second)
	e.Apply(line("a", "default", "a", 1, 1))
	e.Apply(line("a", "default", "a", 2, 3)) // no gap
	e.Apply(line("a", "default", "", 2, 4))
	e.Apply(line("a", "default", "a", 3, 5)) // elected again
	e.Apply(line("a", "default", "", 3, 6))
	e.Apply(line("b", "default", "b", 4, 6))
	e.Apply(line("b", "default", "b", 5, 7))
	e.Exited("b", 8*second)
	e.Started("b", 9*second)
	e.Apply(line("b", "default", "b", 6, 10)) // b's next life
	var goesOn []uint64
	for _, found := range e.Takeovers(nil) {
		if found.GoesOn {
			goesOn = append(goesOn, found.Term)
		}
	}
	if !reflect.DeepEqual(goesOn, []uint64{2, 5}) {
		t.Errorf("terms %v go on, want 2 and 5", goesOn)
	}
}

func TestProgramsOverlapByTheirOwnStamps(t *testing.T) {
	span := func(program, of string, pid int, from, to election.Instant) observe.ProgramSpan {
		return observe.ProgramSpan{Program: program, Election: of, PID: pid, From: from, To: to}
	}
	for name, c := range map[string]struct {
		spans []observe.ProgramSpan
		want  int
	}{
		"one after another":          {[]observe.ProgramSpan{span("p", "x", 1, 1, 5), span("q", "x", 2, 5, 9)}, 0},
		"two at once":                {[]observe.ProgramSpan{span("q", "x", 2, 4, 9), span("p", "x", 1, 1, 5)}, 1},
		"of two elections":           {[]observe.ProgramSpan{span("p", "x", 1, 1, 5), span("q", "y", 2, 4, 9)}, 0},
		"one process, two terms":     {[]observe.ProgramSpan{span("p", "x", 1, 1, 5), span("p", "x", 1, 4, 9)}, 0},
		"two processes of one run":   {[]observe.ProgramSpan{span("p", "x", 1, 1, 5), span("p", "x", 3, 4, 9)}, 1},
		"a long one beside two more": {[]observe.ProgramSpan{span("p", "x", 1, 1, 9), span("q", "x", 2, 2, 3), span("r", "x", 3, 4, 5)}, 2},
	} {
		if got := observe.ProgramOverlaps(c.spans); len(got) != c.want {
			t.Errorf("%s: %d overlaps, want %d: %+v", name, len(got), c.want, got)
		}
	}
}

func TestAPauseIsTheLongestTimeInWhichNobodyActed(t *testing.T) {
	span := func(from, to election.Instant) observe.ProgramSpan { return observe.ProgramSpan{From: from, To: to} }
	for what, c := range map[string]struct {
		spans []observe.ProgramSpan
		want  time.Duration
		at    election.Instant
	}{
		"nobody ever acted":    {nil, 90, 10},
		"all the time":         {[]observe.ProgramSpan{span(0, 100)}, 0, 0},
		"only before":          {[]observe.ProgramSpan{span(0, 9)}, 90, 10},
		"one after a pause":    {[]observe.ProgramSpan{span(0, 20), span(70, 100)}, 50, 20},
		"two at once":          {[]observe.ProgramSpan{span(0, 60), span(20, 30), span(65, 100)}, 5, 60},
		"the last one stopped": {[]observe.ProgramSpan{span(12, 30)}, 70, 30},
	} {
		if got, at := observe.Pause(c.spans, 10, 100); got != c.want || at != c.at {
			t.Errorf("%s: paused for %d at %d, want %d at %d", what, got, at, c.want, c.at)
		}
	}
}
