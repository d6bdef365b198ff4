package actors

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// standAs adds a program with that meta.
func standAs(t *testing.T, r *Registry, meta string, priority int) *Candidacy {
	t.Helper()
	k, err := r.Stand(0, Request{Election: pay, UID: 7, Priority: &priority, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The elector has the meta of the program that acts. If none acts, it has that of the best candidate.
func TestAHostsMetaIsThatOfTheProgramThatActs(t *testing.T) {
	r := newRegistry(false)
	first := standAs(t, r, "first", 100)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100, Meta: "first"})
	standAs(t, r, "second", 100)
	wantInputs(t, r) // the second program is not the best
	r.Lead(0, pay, 4, 1000, nil, nil)
	best := standAs(t, r, "best", 200)
	wantInputs(t, r) // the first still acts
	r.End(first.ID())
	wantInputs(t, r, election.Withdraw{Election: pay, Remaining: 200, Meta: "best"})
	withdrawn(r, 4, 900, election.ReasonWithdrawn)
	r.Gone(first.ID())
	wantInputs(t, r, election.Stopped{Election: pay, Term: 4})
	r.End(best.ID())
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100, Meta: "second"})
	standAs(t, r, "third", 100)
	wantInputs(t, r)
}

// Of two programs with the same priority, each has its own meta.
func TestTheNextProgramsMetaIsOfferedAlthoughItsPriorityIsTheSame(t *testing.T) {
	r := newRegistry(false)
	first := standAs(t, r, "first", 100)
	standAs(t, r, "second", 100)
	r.Take()
	r.End(first.ID())
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100, Meta: "second"})
}

// A record has no metas, so a program gives its meta when it resumes.
func TestAProgramThatResumesHasTheMetaThatItNames(t *testing.T) {
	r, _ := next(theActor())
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
	if _, err := r.Resume(900, back(func(q *Resumption) { q.Meta = "here" })); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100, Meta: "here"})
}
