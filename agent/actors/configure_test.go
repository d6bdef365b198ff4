package actors

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// hosted is a registry whose host leads the default election in term 3.
func hosted(t *testing.T) *Registry {
	t.Helper()
	r := newRegistry(true)
	r.Take()
	r.Lead(0, election.Default, 3, 1000, nil, nil)
	return r
}

func TestANewPriorityCostsNoLead(t *testing.T) {
	r := hosted(t)
	r.Configure(5, Settings{Priority: 40, Host: true, Preempt: true, PreemptDelay: delay})
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 40})
	r.Configure(6, Settings{Priority: 40, Host: true, Preempt: true, PreemptDelay: delay})
	wantInputs(t, r)
}

func TestAHostThatIsNoCandidateAnyMoreStepsDown(t *testing.T) {
	for name, s := range map[string]Settings{
		"candidate: false": {Priority: 100},
		"priority: 0":      {Host: true},
	} {
		r := hosted(t)
		r.Configure(5, s)
		if in := r.Take(); len(in) != 1 || in[0] != (election.Withdraw{Election: election.Default, Stopped: 3}) {
			t.Errorf("%s: the elector gets %#v", name, in)
		}
	}
}

func TestAHostBecomesACandidate(t *testing.T) {
	r := newRegistry(false)
	r.Configure(5, Settings{Priority: 70, Host: true})
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 70})
	r.Configure(6, Settings{Priority: 70})
	wantInputs(t, r, election.Withdraw{Election: election.Default})
	if len(r.races) != 0 {
		t.Error("the race is kept")
	}
}

func TestProgramsWithoutAPriorityGetTheNewOne(t *testing.T) {
	r := newRegistry(false)
	theirs := stand(t, r)
	own := stand(t, r, 90)
	r.Lead(0, pay, 3, 1000, nil, nil)
	r.Take()
	r.Configure(5, Settings{Priority: 80, Preempt: true, PreemptDelay: delay})
	if theirs.priority != 80 || own.priority != 90 {
		t.Errorf("priorities %d and %d", theirs.priority, own.priority)
	}
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 80}) // the first still acts
	r.Advance(5 + election.Instant(delay))
	wantInputs(t, r, election.Withdraw{Election: pay, Remaining: 90}) // the delay of the better program has passed
}

func TestWithoutPreemptNoProgramTakesOver(t *testing.T) {
	r := newRegistry(false)
	stand(t, r)
	r.Lead(0, pay, 3, 1000, nil, nil)
	stand(t, r, 200)
	r.Take()
	r.Configure(5, Settings{Priority: 100, PreemptDelay: delay})
	r.Advance(5 + election.Instant(10*delay))
	wantInputs(t, r)
}
