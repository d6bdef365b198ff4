package actors

import (
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// checks are what a companion reports that acts nowhere.
func checks(all map[string]api.Check) api.Companion { return api.Companion{Checks: all} }

func report(t *testing.T, r *Registry, k *Candidacy, c api.Companion) {
	t.Helper()
	if err := r.Report(0, k.ID(), c, anybody); err != nil {
		t.Fatal(err)
	}
}

func TestAHostWhoseCheckFailsIsNotACandidateUntilItSucceeds(t *testing.T) {
	r := newRegistry(true)
	act := accompany(t, r, api.Companion{})
	k := stand(t, r)
	r.Take()
	report(t, r, act, checks(map[string]api.Check{"payments": {Reason: "check failed: no database"}}))
	wantInputs(t, r, election.Withdraw{Election: pay})
	other := stand(t, r, 200) // it waits too
	r.End(other.ID())
	wantInputs(t, r)
	report(t, r, act, checks(map[string]api.Check{"payments": {Reason: "check failed: no database"}, "*": {Reason: "check failed: no network"}}))
	wantInputs(t, r, election.Withdraw{Election: election.Default})
	report(t, r, act, checks(map[string]api.Check{"payments": {Able: true}, "*": {Reason: "check failed: no network"}}))
	wantInputs(t, r)
	report(t, r, act, checks(map[string]api.Check{"payments": {Able: true}, "*": {Able: true}}))
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100}, election.Campaign{Election: pay, Priority: 100})
	wantLines(t, k, "candidate")
}

func TestALeaderWhoseCheckFailsHandsOverAndGivesTheReason(t *testing.T) {
	r := newRegistry(false)
	act := accompany(t, r, checks(map[string]api.Check{"payments": {Able: true}}))
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000, nil)
	r.Take()
	read(k)
	report(t, r, act, checks(map[string]api.Check{"payments": {Reason: "check failed: no database"}}))
	wantInputs(t, r, election.Withdraw{Election: pay}) // what it led is released once the program has stopped
	withdrawn(r, 3, 900, election.ReasonWithdrawn)
	wantLines(t, k, "revoked 3 until 900 (check failed: no database)")
	wantInputs(t, r)
	if err := r.Receipt(k.ID(), pay, 3, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(3))
	report(t, r, act, checks(map[string]api.Check{"payments": {Able: true}}))
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
}

// An election that is won while the check fails is given back at once.
func TestAHostWhoseCheckFailsWhenItIsElectedStepsDown(t *testing.T) {
	r := newRegistry(false)
	accompany(t, r, checks(map[string]api.Check{"payments": {Reason: "check failed"}}))
	k := stand(t, r)
	read(k)
	r.Take()
	r.Lead(0, pay, 3, 1000, nil)
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 3})
	wantLines(t, k, "")
}

// The next life of a leader leads on although no check has run yet; elsewhere the host waits for
// the first outcome.
func TestBeforeItsFirstCheckALaterLifeLeadsOn(t *testing.T) {
	led := Past{Authority: election.Authority{Election: election.Default, Term: 3, Until: 1000, Priority: 100}}
	needs := Needs{Checked: []election.Name{election.Default, pay}, Named: []election.Name{election.Default, pay}}
	r := New(Config{Priority: 100, Host: true, Past: []Past{led}, NewID: func() string { return "k" }, Needs: needs})
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100})
	stand(t, r)
	wantInputs(t, r)
	if r.beside.Unable(pay) != string(ReasonNoCompanion) || !r.beside.Lacks() {
		t.Error("nobody runs the checks, and the host may be a candidate")
	}
	first := New(Config{Priority: 100, Host: true, Needs: Needs{Checked: []election.Name{api.EveryElection}}, NewID: func() string { return "k" }})
	wantInputs(t, first)
	act := accompany(t, first, checks(map[string]api.Check{"*": {}}))
	wantInputs(t, first)
	if why := first.beside.Verdicts()[api.EveryElection]; why != reasonUnchecked {
		t.Errorf("before the first outcome: %q", why)
	}
	report(t, first, act, checks(map[string]api.Check{"*": {Able: true}}))
	wantInputs(t, first, election.Campaign{Election: election.Default, Priority: 100})
}

// A program that gives up the lead unasked may report why; that does not outlive the leadership.
func TestAProgramReportsWhyItGivesUpTheLead(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000, nil)
	r.Take()
	read(k)
	if err := r.Receipt(k.ID(), pay, 3, "check failed: no database", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 3})
	if got := r.Given(pay); got != "check failed: no database" {
		t.Errorf("given: %q", got)
	}
	withdrawn(r, 3, 900, election.ReasonWithdrawn)
	wantLines(t, k, "revoked 3 until 900 (check failed: no database), end")
	wantInputs(t, r) // the elector has released the term
	if got := r.Given(pay); got != "" {
		t.Errorf("still given: %q", got)
	}
}
