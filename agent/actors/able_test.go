package actors

import (
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// checks is the report of a companion that runs checks and acts in no election.
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
	other := stand(t, r, 200) // this candidate waits too
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
	r.Lead(0, pay, 3, 1000, nil, nil)
	r.Take()
	read(k)
	report(t, r, act, checks(map[string]api.Check{"payments": {Reason: "check failed: no database"}}))
	wantInputs(t, r, election.Withdraw{Election: pay}) // the term is released once the program has stopped
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
	r.Lead(0, pay, 3, 1000, nil, nil)
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 3})
	wantLines(t, k, "")
}

// The next life of a leader leads on although no check has run yet. In other elections the host waits
// for the first outcome.
func TestBeforeItsFirstCheckALaterLifeLeadsOn(t *testing.T) {
	led := Past{Authority: election.Authority{Election: election.Default, Term: 3, Until: 1000, Priority: 100}}
	needs := Needs{Checked: []election.Name{election.Default, pay}, Named: []election.Name{election.Default, pay}}
	r := New(Config{Settings: Settings{Priority: 100, Host: true, Needs: needs}, Past: []Past{led}, NewID: func() string { return "k" }})
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100})
	stand(t, r)
	wantInputs(t, r)
	if r.beside.Unable(pay) != string(ReasonNoCompanion) || !r.beside.Lacks() {
		t.Error("nobody runs the checks, and the host may be a candidate")
	}
	first := New(Config{Settings: Settings{Priority: 100, Host: true, Needs: Needs{Checked: []election.Name{api.EveryElection}}}, NewID: func() string { return "k" }})
	wantInputs(t, first)
	act := accompany(t, first, checks(map[string]api.Check{"*": {}}))
	wantInputs(t, first)
	if why := first.beside.Verdicts()[api.EveryElection]; why != reasonUnchecked {
		t.Errorf("before the first outcome: %q", why)
	}
	report(t, first, act, checks(map[string]api.Check{"*": {Able: true}}))
	wantInputs(t, first, election.Campaign{Election: election.Default, Priority: 100})
}

// A program that gives up the lead unasked may give a reason. The reason is forgotten when the leadership ends.
func TestAProgramReportsWhyItGivesUpTheLead(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000, nil, nil)
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

// With keep-last, a host whose check fails stays a candidate if no other host can lead, and goes on leading.
func TestAHostThatKeepsTheLastIsTheLastResort(t *testing.T) {
	r := newRegistry(true)
	r.cfg.Needs = Needs{KeepLast: []election.Name{api.EveryElection}}
	act := accompany(t, r, checks(map[string]api.Check{"*": {Able: true}}))
	r.Take()
	fails := api.Check{Reason: "check failed: no network"}
	report(t, r, act, checks(map[string]api.Check{"*": fails}))
	last := election.Campaign{Election: election.Default, Priority: 100, LastResort: true}
	wantInputs(t, r, last)
	r.Lead(0, election.Default, 3, 1000, nil, nil)
	wantInputs(t, r)
	report(t, r, act, checks(map[string]api.Check{"*": {Able: true}}))
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100})
	report(t, r, act, checks(map[string]api.Check{"*": fails}))
	wantInputs(t, r, last)
	if why := r.beside.Unable(election.Default); why != fails.Reason {
		t.Errorf("people see %q", why)
	}
	// The other check that fails has no keep-last.
	report(t, r, act, checks(map[string]api.Check{"*": fails, "default": {Reason: "check failed: no disk"}}))
	wantInputs(t, r, election.Withdraw{Election: election.Default, Stopped: 3})
}

// A host with keep-last stays the last resort when its program has gone and another one is left. Before the
// first outcome of a check, a host is not a last resort.
func TestTheLastResortStaysThat(t *testing.T) {
	r := newRegistry(false)
	r.cfg.Needs = Needs{KeepLast: []election.Name{pay}}
	act := accompany(t, r, checks(map[string]api.Check{"payments": {}}))
	first, second := stand(t, r), stand(t, r)
	wantInputs(t, r)
	report(t, r, act, checks(map[string]api.Check{"payments": {Reason: "check failed: no database"}}))
	last := election.Campaign{Election: pay, Priority: 100, LastResort: true}
	wantInputs(t, r, last)
	r.Lead(0, pay, 3, 1000, nil, nil)
	r.End(first.ID())
	wantInputs(t, r, election.Withdraw{Election: pay})
	withdrawn(r, 3, 900, election.ReasonWithdrawn)
	r.Advance(1000)
	wantInputs(t, r, last)
	r.End(second.ID())
	wantInputs(t, r, election.Withdraw{Election: pay})
}
