package actors

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	pay   election.Name = "payments"
	delay               = 5 * time.Second
)

func newRegistry(host bool) *Registry {
	n := 0
	return New(Config{Settings: Settings{Priority: 100, Host: host, Preempt: true, PreemptDelay: delay}, Step: 100, StepOfMany: 300,
		NewID: func() string { n++; return fmt.Sprint("k", n) }})
}

func anybody(uint32) bool { return true }

func stand(t *testing.T, r *Registry, priority ...int) *Candidacy {
	t.Helper()
	q := Request{Election: pay, UID: 7}
	if len(priority) > 0 {
		q.Priority = &priority[0]
	}
	k, err := r.Stand(0, q)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// read returns the lines in short: type, term and deadline.
func read(k *Candidacy) string {
	lines, more := k.Take()
	var all []string
	for _, l := range lines {
		s := l.Type
		if l.Term > 0 {
			s += fmt.Sprint(" ", l.Term)
		}
		if at := l.ValidUntilBoottimeNS + l.StopByBoottimeNS; at > 0 {
			s += fmt.Sprint(" until ", at)
		}
		if l.Reason != "" {
			s += " (" + l.Reason + ")"
		}
		all = append(all, s)
	}
	if !more {
		all = append(all, "end")
	}
	return strings.Join(all, ", ")
}

func wantLines(t *testing.T, k *Candidacy, want string) {
	t.Helper()
	if got := read(k); got != want {
		t.Errorf("%s was told %q, want %q", k.id, got, want)
	}
}

func wantInputs(t *testing.T, r *Registry, want ...election.Input) {
	t.Helper()
	if got := r.Take(); !reflect.DeepEqual(got, want) {
		t.Errorf("the elector was notified of %#v, want %#v", got, want)
	}
}

// withdrawn plays an elector that steps down.
func withdrawn(r *Registry, term election.Term, stopBy election.Instant, why election.Reason) {
	r.Withdraw(election.Withdrawal{Election: pay, Term: term, StopBy: stopBy, Reason: why}, nil)
}

func stopped(term election.Term) election.Stopped {
	return election.Stopped{Election: pay, Term: term}
}

func refusal(t *testing.T, err error, code string) {
	t.Helper()
	refused, ok := errors.AsType[*api.ErrorDetail](err)
	if !ok || refused.Code != code || refused.Message == "" {
		t.Errorf("got %v, want a refusal with %s", err, code)
	}
}

func TestAProgramStandsIsElectedRenewedAndRevoked(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
	wantLines(t, k, "candidate")
	r.Lead(10, pay, 3, 1000, nil, nil)
	wantLines(t, k, "elected 3 until 1000")
	for _, until := range []election.Instant{1050, 1100, 1200} { // the first step is too small for a line
		r.Prolong(pay, 3, until)
	}
	r.Prolong(pay, 2, 1500) // an older term
	r.Prolong("other", 3, 1500)
	wantLines(t, k, "renewed 3 until 1200")
	withdrawn(r, 3, 1250, election.ReasonResigned)
	wantLines(t, k, "revoked 3 until 1250 (resigned)")
	wantInputs(t, r)
	if err := r.Receipt(k.ID(), pay, 3, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(3))
	r.Lead(2000, pay, 5, 3000, nil, nil)
	wantLines(t, k, "elected 5 until 3000")
}

func TestWithManyElectionsFewerRenewalsAreTold(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	r.Lead(0, pay, 2, 1000, nil, nil)
	wantLines(t, k, "candidate, elected 1 until 1000, elected 2 until 1000")
	for i := range many {
		name := election.Name(fmt.Sprint("e", i))
		if _, err := r.Stand(0, Request{Election: name}); err != nil {
			t.Fatal(err)
		}
		r.Lead(0, name, 1, 1000, nil, nil)
	}
	r.Prolong(pay, 2, 1299)
	wantLines(t, k, "")
	r.Prolong(pay, 2, 1300)
	wantLines(t, k, "renewed 2 until 1300")
	r.Withdraw(election.Withdrawal{Election: "e0", Term: 1, StopBy: 1000, Reason: election.ReasonResigned}, nil)
	r.Prolong(pay, 2, 1400)
	wantLines(t, k, "renewed 2 until 1400")
}

func TestARenewalThatWasNotReadGivesWayAndNothingElseDoes(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	for until := election.Instant(2000); until < 9000; until += 1000 {
		r.Prolong(pay, 1, until)
	}
	withdrawn(r, 1, 9000, election.ReasonResigned)
	r.Lead(9100, pay, 2, 9500, nil, nil)
	wantLines(t, k, "candidate, elected 1 until 1000, revoked 1 until 9000 (resigned), elected 2 until 9500")
}

func TestAReaderWithTooMuchWaitingIsGivenUp(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	for term := election.Term(1); term <= maxWaiting; term++ {
		r.Lead(0, pay, term, 1000, nil, nil)
		withdrawn(r, term, 1000, election.ReasonResigned)
	}
	lines, more := k.Take()
	if len(lines) != maxWaiting || more {
		t.Errorf("%d lines wait, more %t", len(lines), more)
	}
}

func TestTheBestOfAHostActsAndTheOthersWaitTheirTurn(t *testing.T) {
	r := newRegistry(false)
	first := stand(t, r)
	r.Take()
	second := stand(t, r) // the same priority: nothing changes
	wantInputs(t, r)
	best := stand(t, r, 200)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 200})
	r.Lead(0, pay, 1, 1000, nil, nil)
	wantLines(t, best, "candidate, elected 1 until 1000")
	wantLines(t, first, "candidate")
	r.End(best.ID())
	wantInputs(t, r, election.Withdraw{Election: pay, Remaining: 100})
	withdrawn(r, 1, 1000, election.ReasonWithdrawn)
	wantInputs(t, r) // best has not stopped
	r.Gone(best.ID())
	wantInputs(t, r, stopped(1))
	r.Lead(500, pay, 2, 1500, nil, nil)
	wantLines(t, first, "elected 2 until 1500")
	wantLines(t, second, "candidate")
	wantLines(t, best, "end")
}

func TestAnElectionWonForNobodyIsGivenBack(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Take()
	r.End(k.ID())
	wantInputs(t, r, election.Withdraw{Election: pay})
	r.Lead(0, pay, 1, 1000, nil, nil) // the election was won at the moment of the withdrawal
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 1})
	withdrawn(r, 1, 1000, election.ReasonWithdrawn)
	wantInputs(t, r)
	if len(r.races) != 0 {
		t.Error("the race stays")
	}
}

func TestTheHostIsTheLowestAmongEquals(t *testing.T) {
	r := newRegistry(true)
	r.Lead(0, election.Default, 1, 1000, nil, nil)
	k, err := r.Stand(0, Request{Election: election.Default})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, k, "candidate")
	r.Withdraw(election.Withdrawal{Election: election.Default, Term: 1, StopBy: 1000}, nil)
	r.Lead(0, election.Default, 2, 2000, nil, nil)
	wantLines(t, k, "elected 2 until 2000")
}

func TestAStrictlyHigherPriorityOfTheHostTakesOverAfterTheDelay(t *testing.T) {
	r := newRegistry(false)
	low := stand(t, r)
	r.Lead(0, pay, 1, election.Instant(time.Hour), nil, nil)
	high := stand(t, r, 101)
	gone := stand(t, r, 300)
	r.End(gone.ID())
	r.Take()
	if r.WakeAt() != election.Instant(delay) {
		t.Errorf("wakes at %d", r.WakeAt())
	}
	r.Advance(election.Instant(delay) - 1)
	wantInputs(t, r)
	r.Advance(election.Instant(delay))
	wantInputs(t, r, election.Withdraw{Election: pay, Remaining: 101})
	r.Advance(election.Instant(delay))
	wantInputs(t, r)
	withdrawn(r, 1, election.Instant(time.Hour), election.ReasonWithdrawn)
	wantLines(t, low, "candidate, elected 1 until 3600000000000, revoked 1 until 3600000000000 (preempted by a higher priority)")
	if err := r.Receipt(low.ID(), pay, 1, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(1))
	r.Lead(0, pay, 2, election.Instant(time.Hour), nil, nil)
	wantLines(t, high, "candidate, elected 2 until 3600000000000")
}

func TestARivalThatEndsTakesNothingOver(t *testing.T) {
	r := newRegistry(false)
	stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	high := stand(t, r, 101)
	r.Take()
	r.End(high.ID())
	if r.WakeAt() != election.Never {
		t.Error("still waits to take over")
	}
	r.Advance(election.Instant(time.Hour))
	wantInputs(t, r)
}

func TestPriorityZeroNeverLeads(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r, 0)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 0})
	r.Lead(0, pay, 1, 1000, nil, nil)
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 1})
	wantLines(t, k, "candidate")
}

func TestCandidaciesAreBounded(t *testing.T) {
	r := newRegistry(false)
	for range MaxPerElection {
		stand(t, r)
	}
	_, err := r.Stand(0, Request{Election: pay})
	refusal(t, err, api.CodeBusy)
	var last *Candidacy
	for i := range MaxCandidacies - MaxPerElection {
		if last, err = r.Stand(0, Request{Election: election.Name(fmt.Sprint("e", i)), Own: true}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.Stand(0, Request{Election: "other", Own: true})
	refusal(t, err, api.CodeBusy)
	r.End(last.ID())
	if _, err = r.Stand(0, Request{Election: "other", Own: true}); err != nil {
		t.Error(err)
	}
}

func TestCloseTellsEverybodyThatTheAgentStops(t *testing.T) {
	r := newRegistry(false)
	waiting, acting := stand(t, r, 1), stand(t, r)
	r.Lead(0, pay, 2, 500, nil, nil)
	read(acting)
	r.Close("the agent stops")
	wantLines(t, waiting, "candidate, revoked (the agent stops), end")
	wantLines(t, acting, "revoked 2 until 500 (the agent stops), end")
	_, err := r.Stand(0, Request{Election: pay})
	refusal(t, err, api.CodeUnavailable)
	r.End(waiting.ID())
	r.End(acting.ID())
}

func TestCandidaciesAreListedWithWhatTheyLead(t *testing.T) {
	r := newRegistry(true)
	k := stand(t, r)
	r.Lead(0, pay, 2, 500, nil, nil)
	list := r.List()
	if len(list) != 1 || list[0].Campaign != k.ID() || list[0].Term != 2 || list[0].UID != 7 || list[0].Priority != 100 {
		t.Errorf("%+v", list)
	}
}

// Without a quorum another program may have been elected, too (G6).
func TestAProgramIsToldWhatItsLeadershipRestsOn(t *testing.T) {
	r := New(Config{Settings: Settings{Priority: 100}, NewID: func() string { return "k" }, Authority: api.AuthorityView})
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	r.Rise(pay, 2, 2000, nil)
	lines, _ := k.Take()
	if len(lines) != 3 || lines[0].Authority != "" || lines[1].Authority != api.AuthorityView || lines[2].Authority != api.AuthorityView {
		t.Errorf("%+v", lines)
	}
}
