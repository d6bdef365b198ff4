package actors

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// The elector gives up a candidacy of the former life that no Campaign claims (K4d). So the registry also
// claims a candidacy that goes on after a hand-over.
func TestACandidacyThatHandsOverIsClaimedByTheNextLife(t *testing.T) {
	ending := election.Ending{Reason: election.ReasonResigned, StopBy: 1000}
	past := Past{Authority: election.Authority{Election: election.Default, Highest: 4, Term: 4, Until: 1000, Priority: 100, Ending: ending}}
	r := New(Config{Settings: Settings{Host: true, Priority: 100}, Past: []Past{past}, Record: func(election.Name, record.Program) {}})
	inputs := r.Take()
	r.Withdraw(election.Withdrawal{Election: election.Default, Term: 4, StopBy: 1000, Reason: election.ReasonResigned}, nil)
	inputs = append(inputs, r.Take()...)
	r.Advance(1000)
	for _, in := range append(inputs, r.Take()...) {
		if c, is := in.(election.Campaign); is && c.Priority == 100 {
			return
		}
	}
	t.Errorf("the host is a candidate, and the elector gives its candidacy up: it received %+v", inputs)
}

// The election has no candidates any more, so its race is dropped. But the program that acted may still act.
func TestAProgramThatIsWaitedForAndAbsentIsListed(t *testing.T) {
	r, _ := next(theActor(), func(p *Past) { p.Ending = election.Ending{Reason: election.ReasonTransferred, StopBy: 1000} })
	withdrawn(r, 4, 1000, election.ReasonTransferred)
	if all := r.List(); len(all) != 1 || all[0].Term != 4 {
		t.Errorf("listed are %+v", all)
	}
	r.Close("the agent stops")
}

// Its agent died, so the program was sent no later deadline, even if the lease was renewed since.
func TestAProgramThatIsAbsentAtItsDeadlineIsNotWaitedFor(t *testing.T) {
	r, recorded := next(theActor())
	r.Take()
	r.Prolong(pay, 4, 2000)
	withdrawn(r, 4, 2000, election.ReasonResigned)
	r.Take()
	r.Advance(1000)
	if wake := r.WakeAt(); wake <= 1000 {
		t.Errorf("at 1000 it wants to be woken at %d", wake)
	}
	if inputs := r.Take(); !slices.Contains(inputs, election.Input(stopped(4))) {
		t.Errorf("the elector received %v", inputs)
	}
	if last := (*recorded)[len(*recorded)-1]; last.Stopped != 4 {
		t.Errorf("on record is %+v", last)
	}
}
