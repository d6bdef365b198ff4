package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// accompany connects a companion.
func accompany(t *testing.T, r *Registry, c api.Companion, of ...record.Program) *Candidacy {
	t.Helper()
	q := Request{Companion: &c}
	if len(of) > 0 {
		q.Program = of[0]
	}
	k, err := r.Stand(0, q)
	if err != nil {
		t.Fatal(err)
	}
	wantStart(t, k)
	return k
}

// wantStart takes the first line of a companion, and leaves the others.
func wantStart(t *testing.T, k *Candidacy) {
	t.Helper()
	if len(k.waiting) == 0 || k.waiting[0].Type != api.CampaignCandidate {
		t.Fatalf("its first line is missing: %v", k.waiting)
	}
	k.waiting = k.waiting[1:]
}

var acts = api.Companion{Elections: []string{"payments"}}

// paired returns a program and a companion that act under term 1.
func paired(t *testing.T) (r *Registry, program, companion *Candidacy) {
	t.Helper()
	r = newRegistry(false)
	program, companion = stand(t, r), accompany(t, r, acts)
	r.Lead(0, pay, 1, 1000, nil, nil)
	r.Take()
	wantLines(t, companion, "elected 1 until 1000")
	return r, program, companion
}

func receipt(t *testing.T, r *Registry, k *Candidacy, term election.Term) {
	t.Helper()
	if err := r.Receipt(k.ID(), pay, term, "", anybody); err != nil {
		t.Fatal(err)
	}
}

func TestTheProgramAndTheCompanionMustBothHaveStopped(t *testing.T) {
	for _, companionFirst := range []bool{true, false} {
		r, program, companion := paired(t)
		withdrawn(r, 1, 900, election.ReasonResigned)
		wantLines(t, companion, "revoked 1 until 900 ("+string(election.ReasonResigned)+")")
		first, second := program, companion
		if companionFirst {
			first, second = second, first
		}
		receipt(t, r, first, 1)
		wantInputs(t, r)
		receipt(t, r, second, 1)
		wantInputs(t, r, stopped(1))
		receipt(t, r, companion, 1) // once more
		wantInputs(t, r)
	}
}

func TestACompanionThatDoesNotStopIsNotWaitedForBeyondTheLease(t *testing.T) {
	r, program, companion := paired(t)
	withdrawn(r, 1, 900, election.ReasonResigned)
	receipt(t, r, program, 1)
	r.Advance(899)
	wantInputs(t, r)
	r.Advance(900)
	wantInputs(t, r) // the elector releases the term itself
	receipt(t, r, companion, 1)
	wantInputs(t, r)
}

// If a reload removes the hook of a companion that acts, the companion's receipt is still awaited (A2).
func TestACompanionThatActsIsWaitedForWhateverItReports(t *testing.T) {
	r, program, companion := paired(t)
	r.Configure(10, Settings{Priority: 100})
	report(t, r, companion, api.Companion{})
	withdrawn(r, 1, 900, election.ReasonResigned)
	receipt(t, r, program, 1)
	wantInputs(t, r)
	wantLines(t, companion, "revoked 1 until 900 ("+string(election.ReasonResigned)+")")
	receipt(t, r, companion, 1)
	wantInputs(t, r, stopped(1))
}

// The end of a companion is not its receipt: what it had set up is not undone.
func TestADeadCompanionIsWaitedForUntilItsLastDeadline(t *testing.T) {
	r, program, companion := paired(t)
	r.Prolong(pay, 1, 1200)
	r.End(companion.ID())
	r.Prolong(pay, 1, 5000) // the companion was not sent this deadline
	r.Advance(1100)
	withdrawn(r, 1, 4900, election.ReasonResigned)
	receipt(t, r, program, 1)
	wantInputs(t, r)
	if at := r.WakeAt(); at != 1200 {
		t.Errorf("looks again at %d", at)
	}
	r.Advance(1199)
	wantInputs(t, r)
	r.Advance(1200)
	wantInputs(t, r, stopped(1))
}

// The next companion undoes what an earlier one had set up, and gives the receipt.
func TestTheNextCompanionGivesTheReceipt(t *testing.T) {
	r, program, companion := paired(t)
	r.End(companion.ID())
	withdrawn(r, 1, 900, election.ReasonResigned)
	receipt(t, r, program, 1)
	elsewhere := accompany(t, r, api.Companion{Elections: []string{"others"}}) // this companion does not act in the election
	wantLines(t, elsewhere, "")
	receipt(t, r, elsewhere, 1)
	wantInputs(t, r)
	next := accompany(t, r, acts)
	wantLines(t, next, "revoked 1 until 900 ("+string(election.ReasonResigned)+")")
	receipt(t, r, next, 1)
	wantInputs(t, r, stopped(1))
}

// A term that was sent to one process is sent to no other (K4d): the agent takes a higher one.
func TestTheNextCompanionActsUnderAHigherTerm(t *testing.T) {
	r, _, companion := paired(t)
	r.End(companion.ID())
	next := accompany(t, r, acts)
	wantInputs(t, r, election.Overtake{Election: pay})
	report(t, r, next, acts)
	wantInputs(t, r) // the higher term was asked for already
	wantLines(t, next, "")
	r.Rise(pay, 2, 1500, nil)
	wantLines(t, next, "elected 2 until 1500")
	r.Rise(pay, 3, 1600, nil)
	wantLines(t, next, "renewed 3 until 1600")
}

// A companion that connects while its host leads acts at once, under the present term: no other companion
// was sent that term.
func TestACompanionBeginsWhereItsHostLeads(t *testing.T) {
	r := newRegistry(false)
	stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	r.Prolong(pay, 1, 1010) // too small a step for a line
	r.Take()
	companion := accompany(t, r, acts)
	wantInputs(t, r)
	wantLines(t, companion, "elected 1 until 1010")
	r.Prolong(pay, 1, 1050)
	wantLines(t, companion, "")
	r.Prolong(pay, 1, 1110)
	wantLines(t, companion, "renewed 1 until 1110")
}

// pastOf is a record of a program and a companion that act under term 4.
func pastOf(until election.Instant, of record.Program) Past {
	return Past{Authority: election.Authority{Election: pay, Term: 4, Until: until, Priority: 100},
		Program:   record.Program{Campaign: "p", PID: 5, Started: 9, Told: 4, Priority: 100},
		Companion: record.Program{Campaign: "old", PID: of.PID, Started: of.Started, Told: 4}}
}

func TestACompanionGoesOnWithTheAgentsNextLife(t *testing.T) {
	self := record.Program{PID: 77, Started: 8}
	for name, c := range map[string]struct {
		of    record.Program
		holds map[string]uint64
		at    election.Instant
		want  string // the line that the companion is sent
		takes []election.Input
	}{
		"the same process":          {self, map[string]uint64{"payments": 4}, 0, "renewed 4 until 1000", nil},
		"another process":           {record.Program{PID: 78, Started: 8}, map[string]uint64{"payments": 4}, 0, "", []election.Input{election.Overtake{Election: pay}}},
		"its number, given again":   {record.Program{PID: 77, Started: 9}, map[string]uint64{"payments": 4}, 0, "", []election.Input{election.Overtake{Election: pay}}},
		"it has stopped meanwhile":  {self, nil, 0, "", []election.Input{election.Overtake{Election: pay}}},
		"it holds another term":     {self, map[string]uint64{"payments": 3}, 0, "", []election.Input{election.Overtake{Election: pay}}},
		"its deadline has passed":   {self, map[string]uint64{"payments": 4}, 1000, "", []election.Input{election.Overtake{Election: pay}}},
		"the system does not tell":  {record.Program{PID: 77}, map[string]uint64{"payments": 4}, 0, "", []election.Input{election.Overtake{Election: pay}}},
		"it does not act there now": {record.Program{PID: 78, Started: 8}, nil, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{Settings: Settings{Priority: 100}, Past: []Past{pastOf(1000, self)}, NewID: func() string { return "new" }})
			r.Take()
			reports := acts
			if name == "it does not act there now" {
				reports = api.Companion{}
			}
			reports.Holds = c.holds
			k, err := r.Stand(c.at, Request{Companion: &reports, Program: c.of})
			if err != nil {
				t.Fatal(err)
			}
			wantStart(t, k)
			wantLines(t, k, c.want)
			wantInputs(t, r, c.takes...)
		})
	}
}

// The run of a companion on record delays the release until its deadline, whatever else has died (A3).
func TestARecordedCompanionHoldsTheReleaseOfTheNextLife(t *testing.T) {
	r := New(Config{Settings: Settings{Priority: 100}, Past: []Past{pastOf(1000, record.Program{PID: 77, Started: 8})}, NewID: func() string { return "new" }})
	r.Dead("p") // the program
	r.Take()
	withdrawn(r, 4, 1000, election.ReasonResigned)
	r.Advance(999)
	wantInputs(t, r)
	other := accompany(t, r, acts, record.Program{PID: 78, Started: 10})
	wantLines(t, other, "revoked 4 until 1000 ("+string(ReasonStopped)+")")
	receipt(t, r, other, 4)
	wantInputs(t, r, stopped(4))
}

func TestATermIsOnRecordBeforeACompanionIsSentIt(t *testing.T) {
	var on record.Program
	var k *Candidacy
	r := New(Config{Settings: Settings{Priority: 100}, NewID: func() string { return "k" }, RecordCompanion: func(_ election.Name, p record.Program) {
		if k != nil && p.Told > on.Told && len(k.waiting) > 0 {
			t.Errorf("%v was sent before it was on record", k.waiting)
		}
		on = p
	}})
	r.race(pay).candidates = []*Candidacy{{election: pay, host: true, priority: 100}}
	k = accompany(t, r, acts, record.Program{PID: 77, Started: 8})
	r.Lead(0, pay, 3, 1000, nil, nil)
	wantLines(t, k, "elected 3 until 1000")
	if on.Told != 3 || on.Stopped != 0 || on.PID != 77 {
		t.Errorf("recorded: %+v", on)
	}
	r.Rise(pay, 4, 1100, nil)
	wantLines(t, k, "renewed 4 until 1100")
	withdrawn(r, 4, 1100, election.ReasonResigned)
	receipt(t, r, k, 4)
	if on.Told != 4 || on.Stopped != 4 {
		t.Errorf("recorded: %+v", on)
	}
}

func TestAnElectionHasOneCompanion(t *testing.T) {
	r := newRegistry(false)
	every := accompany(t, r, api.Companion{Elections: []string{api.EveryElection}})
	one := accompany(t, r, acts)
	_, err := r.Stand(0, Request{Companion: &api.Companion{Elections: []string{"others", "payments"}}})
	refusal(t, err, api.CodeInUse)
	refusal(t, r.Report(0, every.ID(), acts, anybody), api.CodeInUse)
	refusal(t, r.Report(0, every.ID(), api.Companion{}, func(uint32) bool { return false }), api.CodeForbidden)
	refusal(t, r.Report(0, "nobody", api.Companion{}, anybody), api.CodeNotFound)
	r.beside.Change(pay, api.Change{Term: 1})
	r.beside.Change("others", api.Change{Term: 2})
	r.beside.Reloaded()
	wantLines(t, one, "changed 1, reloaded")
	wantLines(t, every, "changed 2, reloaded")
}

// The elector releases a term only once both the program and the companion have stopped.
func TestAReceiptUnaskedReleasesNothingWhileAnotherActs(t *testing.T) {
	r, program, companion := paired(t)
	receipt(t, r, program, 1)
	wantInputs(t, r, election.Withdraw{Election: pay})
	withdrawn(r, 1, 900, election.ReasonWithdrawn)
	receipt(t, r, companion, 1)
	wantInputs(t, r, stopped(1))

	r, program, companion = paired(t)
	receipt(t, r, companion, 1)
	wantInputs(t, r, election.Resign{Election: pay}, election.Withdraw{Election: pay, Remaining: 100})
	withdrawn(r, 1, 900, election.ReasonWithdrawn)
	r.Take()
	receipt(t, r, program, 1)
	wantInputs(t, r, stopped(1))
}

// A companion that gives its receipt unasked gives up the leadership.
func TestACompanionGivesUpTheLeadership(t *testing.T) {
	r, _, companion := paired(t)
	if err := r.Receipt(companion.ID(), pay, 1, "hook failed: exit status 1", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Resign{Election: pay}, election.Withdraw{Election: pay, Remaining: 100})
	if got := r.Given(pay); got != "hook failed: exit status 1" {
		t.Errorf("given: %q", got)
	}
}

// A host with a hook is a candidate only with its companion. While the host leads, it waits some time for
// a companion to come back.
func TestAHostWithoutItsCompanionIsNotACandidate(t *testing.T) {
	r := New(Config{Settings: Settings{Priority: 100, Needs: Needs{Hooked: func(name election.Name) bool { return name == pay }, Named: []election.Name{pay}}}, NewID: func() func() string { n := 0; return func() string { n++; return fmt.Sprint("k", n) } }()})
	stand(t, r)
	wantInputs(t, r)
	if !r.beside.Lacks() || r.beside.Unable(pay) != string(ReasonNoCompanion) {
		t.Error("the companion is not missed")
	}
	companion := accompany(t, r, acts)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
	if r.beside.Lacks() {
		t.Error("the companion is missed")
	}
	lease := election.Instant(time.Hour)
	r.Lead(0, pay, 1, lease, nil, nil)
	r.End(companion.ID())
	r.Advance(10)
	r.Advance(election.Instant(companionGrace))
	wantInputs(t, r)
	if at := r.WakeAt(); at != 10+election.Instant(companionGrace) {
		t.Errorf("looks again at %d", at)
	}
	r.Advance(10 + election.Instant(companionGrace))
	wantInputs(t, r, election.Withdraw{Election: pay})
}
