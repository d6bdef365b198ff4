package actors

import (
	"sync/atomic"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func TestAnEndedCandidacyIsReleasedByReceiptProofOrDeadline(t *testing.T) {
	for how, want := range map[string]bool{"receipt": true, "proof": true, "deadline": false} {
		r := newRegistry(false)
		k := stand(t, r)
		r.Lead(0, pay, 4, 1000, nil, nil)
		r.Take()
		r.End(k.ID())
		wantInputs(t, r, election.Withdraw{Election: pay})
		if _, waits := r.Awaits(k.ID()); waits {
			t.Error("awaited before the elector has withdrawn")
		}
		withdrawn(r, 4, 1000, election.ReasonWithdrawn)
		if until, waits := r.Awaits(k.ID()); !waits || until != 1000 || r.WakeAt() != 1000 {
			t.Errorf("%s: awaited %t until %d, wake at %d", how, waits, until, r.WakeAt())
		}
		switch how {
		case "receipt":
			if err := r.Receipt(k.ID(), pay, 0, "", anybody); err != nil {
				t.Fatal(err)
			}
		case "proof":
			r.Gone(k.ID())
		case "deadline":
			r.Advance(999)
			r.Advance(1000)
			r.Gone(k.ID()) // too late to matter
		}
		if got := len(r.Take()) == 1; got != want {
			t.Errorf("%s: given back early: %t", how, got)
		}
		c := &r.Counters
		by := map[string]*atomic.Uint64{"receipt": &c.ByReceipt, "proof": &c.ByProof, "deadline": &c.ByDeadline}
		if by[how].Load() != 1 || c.Elected.Load() != 1 || c.Revoked.Load() != 1 || c.Candidacies.Load() != 0 {
			t.Errorf("%s: counted %+v", how, c)
		}
		if len(r.byID)+len(r.races)+len(r.waits) != 0 || r.WakeAt() != election.Never {
			t.Errorf("%s: left behind: %d candidacies, %d races, %d waits", how, len(r.byID), len(r.races), len(r.waits))
		}
		refusal(t, r.Receipt(k.ID(), pay, 0, "", anybody), api.CodeNotFound)
	}
}

func TestAProofCountsOnlyOnceTheCandidacyHasEnded(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	withdrawn(r, 1, 1000, election.ReasonResigned)
	r.Take()
	r.Gone(k.ID())
	wantInputs(t, r)
}

func TestWithNobodyActingTheReceiptIsGivenAtOnce(t *testing.T) {
	r := newRegistry(true)
	wantInputs(t, r, election.Campaign{Election: election.Default, Priority: 100})
	r.Lead(0, election.Default, 1, 1000, nil, nil)
	r.Withdraw(election.Withdrawal{Election: election.Default, Term: 1, StopBy: 1000}, nil)
	wantInputs(t, r, election.Stopped{Election: election.Default, Term: 1})
}

func TestAHigherTermOfTheSameLeaderIsToldAsARenewal(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	read(k)
	r.Rise(pay, 4, 1001, nil)
	wantLines(t, k, "renewed 4 until 1001")
	r.Take()
	withdrawn(r, 4, 1001, election.ReasonResigned)
	wantLines(t, k, "revoked 4 until 1001 (resigned)")
	if err := r.Receipt(k.ID(), pay, 1, "", anybody); err != nil { // for the former term
		t.Fatal(err)
	}
	wantInputs(t, r)
	if err := r.Receipt(k.ID(), pay, 4, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(4))
}

func TestAReceiptUnaskedEndsTheTermAndTheCandidacy(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	r.Take()
	if err := r.Receipt(k.ID(), pay, 0, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 1})
	withdrawn(r, 1, 1000, election.ReasonWithdrawn)
	wantInputs(t, r) // the elector has released the term
	wantLines(t, k, "candidate, elected 1 until 1000, revoked 1 until 1000 (the program has stopped), end")
	r.End(k.ID())
	wantInputs(t, r)
	if len(r.byID)+len(r.races) != 0 {
		t.Error("something stays")
	}
}

// A late receipt must not end a term of which the program may not know yet.
func TestALateReceiptDoesNotCountForTheNextTerm(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	withdrawn(r, 1, 1000, election.ReasonResigned)
	r.Advance(1000)
	r.Lead(1000, pay, 2, 2000, nil, nil)
	r.Take()
	for _, term := range []election.Term{0, 1} {
		if err := r.Receipt(k.ID(), pay, term, "", anybody); err != nil {
			t.Fatal(err)
		}
		wantInputs(t, r)
	}
	if err := r.Receipt(k.ID(), pay, 0, "", anybody); err != nil { // the second receipt
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay})
	refusal(t, r.Receipt(k.ID(), pay, 9, "", anybody), api.CodeBadRequest)
}

func TestOnlyTheProgramsUserMayGiveItsReceipt(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	withdrawn(r, 1, 1000, election.ReasonResigned)
	r.Take()
	refusal(t, r.Receipt(k.ID(), pay, 1, "", func(uid uint32) bool { return uid == 8 }), api.CodeForbidden)
	wantInputs(t, r)
	if err := r.Receipt(k.ID(), pay, 1, "", func(uid uint32) bool { return uid == 7 }); err != nil {
		t.Error(err)
	}
}

// A receipt without a term that comes twice must not give back the next term
// while the program acts under it.
func TestAReceiptThatComesTwiceDoesNotCountForTheNextTerm(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 1, 1000, nil, nil)
	withdrawn(r, 1, 1000, election.ReasonResigned)
	for range 2 {
		if err := r.Receipt(k.ID(), pay, 0, "", anybody); err != nil {
			t.Fatal(err)
		}
	}
	r.Lead(500, pay, 2, 2000, nil, nil)
	r.Take()
	if err := r.Receipt(k.ID(), pay, 0, "", anybody); err != nil { // the copy of the receipt
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay})
	withdrawn(r, 2, 2000, election.ReasonWithdrawn)
	wantInputs(t, r) // no receipt for term 2 has come
	if err := r.Receipt(k.ID(), pay, 2, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(2))
}

// TestAReceiptForATermHeardOfByItsEndIsTaken: the term rose and ended in one step, so the program read of it
// only in the revoked line.
func TestAReceiptForATermHeardOfByItsEndIsTaken(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 3, 1000, nil, nil)
	r.Take()
	withdrawn(r, 4, 1000, election.ReasonPreempted)
	if err := r.Receipt(k.ID(), pay, 4, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Stopped{Election: pay, Term: 4})
}
