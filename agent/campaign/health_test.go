package campaign

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

func TestAnUnhealthyHostIsNoCandidateUntilItIsWellAgain(t *testing.T) {
	r := newRegistry(true)
	k := stand(t, r)
	r.Take()
	r.Judge(pay, "check failed: no database")
	wantInputs(t, r, election.Withdraw{Election: pay})
	other := stand(t, r, 200) // it waits too
	r.End(other.ID())
	wantInputs(t, r)
	r.Judge("", "check failed: no network")
	wantInputs(t, r, election.Withdraw{Election: election.Default})
	r.Judge(pay, "")
	wantInputs(t, r)
	r.Judge("", "")
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100}, election.Campaign{Election: pay, Priority: 100})
	wantLines(t, k, "candidate")
}

func TestAnUnhealthyLeaderHandsOverAndSaysWhy(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000)
	r.Take()
	read(k)
	r.Judge(pay, "check failed: no database")
	wantInputs(t, r, election.Withdraw{Election: pay}) // what it led is released once the program has stopped
	withdrawn(r, 3, 900, election.ReasonWithdrawn)
	wantLines(t, k, "revoked 3 until 900 (check failed: no database)")
	wantInputs(t, r)
	if err := r.Receipt(k.ID(), 3, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(3))
	r.Judge(pay, "")
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
}

// An election that is won while the check fails is given back at once.
func TestAnUnhealthyHostThatIsElectedStepsDown(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	read(k)
	r.Judge(pay, "check failed")
	r.Take()
	r.Lead(0, pay, 3, 1000)
	wantInputs(t, r, election.Withdraw{Election: pay})
	wantLines(t, k, "")
}

// The next process run of a leader leads on although its check has not run yet; elsewhere the host
// waits for it.
func TestBeforeItsFirstCheckALaterLifeLeadsOn(t *testing.T) {
	led := Past{Authority: election.Authority{Election: election.Default, Term: 3, Until: 1000, Priority: 100}}
	r := New(Config{Priority: 100, Host: true, Past: []Past{led}, NewID: func() string { return "k" },
		Unhealthy: map[election.Name]string{election.Default: "not known", pay: "not known"}})
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100})
	stand(t, r)
	wantInputs(t, r)
	first := New(Config{Priority: 100, Host: true, Unhealthy: map[election.Name]string{"": "not known"}})
	wantInputs(t, first)
	first.Judge("", "")
	wantInputs(t, first, election.Campaign{Election: election.Default, Priority: 100})
}

// A program that gives up the lead unasked may say why; what it says does not outlive the leadership.
func TestAProgramSaysWhyItGivesUpTheLead(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000)
	r.Take()
	read(k)
	if err := r.Receipt(k.ID(), 3, "check failed: no database", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay})
	if got := r.Given(pay); got != "check failed: no database" {
		t.Errorf("given: %q", got)
	}
	withdrawn(r, 3, 900, election.ReasonWithdrawn)
	wantLines(t, k, "revoked 3 until 900 (check failed: no database), end")
	wantInputs(t, r, stopped(3))
	if got := r.Given(pay); got != "" {
		t.Errorf("still given: %q", got)
	}
}
