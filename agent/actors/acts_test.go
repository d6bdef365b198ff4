package actors

import (
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// W12: a program may write the word until its receipt, even after it was asked to stop.
func TestW12AProgramActsFromItsElectionUntilItsReceipt(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	acts := func(term election.Term) {
		t.Helper()
		if name, err := r.Acts(k.ID(), term, anybody); err != nil || name != pay {
			t.Errorf("term %d: %q, %v", term, name, err)
		}
	}
	refused := func(term election.Term) {
		t.Helper()
		_, err := r.Acts(k.ID(), term, anybody)
		refusal(t, err, api.CodeNotLeader)
	}
	refused(0)
	refused(4)
	r.Lead(0, pay, 4, 1000, nil, nil)
	acts(4)
	refused(0) // a write has to name its term
	refused(3)
	refused(5)
	r.Rise(pay, 6, 1100, nil)
	acts(6)
	refused(4)
	withdrawn(r, 6, 1100, election.ReasonResigned)
	acts(6)
	refused(4)
	if err := r.Receipt(k.ID(), pay, 6, "", anybody); err != nil {
		t.Fatal(err)
	}
	refused(6)
	r.Lead(0, pay, 8, 2000, nil, nil)
	acts(8)
	refused(6)
	if err := r.Receipt(k.ID(), pay, 8, "done", anybody); err != nil { // the program gives up by itself
		t.Fatal(err)
	}
	refused(8)
}

func TestW12AProgramThatIsNotToldToStopInTimeActsNoMore(t *testing.T) {
	r := newRegistry(false)
	k := stand(t, r)
	r.Lead(0, pay, 4, 1000, nil, nil)
	withdrawn(r, 4, 1000, election.ReasonResigned)
	r.Advance(999)
	if _, err := r.Acts(k.ID(), 4, anybody); err != nil {
		t.Error(err)
	}
	r.Advance(1000)
	_, err := r.Acts(k.ID(), 4, anybody)
	refusal(t, err, api.CodeNotLeader)
}

func TestOnlyTheProgramThatLeadsActsAndOnlyForItsUser(t *testing.T) {
	r := newRegistry(false)
	first, second := stand(t, r), stand(t, r)
	r.Lead(0, pay, 4, 1000, nil, nil)
	_, err := r.Acts("k99", 4, anybody)
	refusal(t, err, api.CodeNotFound)
	_, err = r.Acts(second.ID(), 4, anybody)
	refusal(t, err, api.CodeNotLeader)
	_, err = r.Acts(first.ID(), 4, func(uid uint32) bool { return uid != 7 })
	refusal(t, err, api.CodeForbidden)
	_, err = r.Acts(second.ID(), 4, func(uint32) bool { return false }) // a user without the right does not learn which program leads
	refusal(t, err, api.CodeForbidden)
	if name, err := r.Acts(first.ID(), 4, func(uid uint32) bool { return uid == 7 }); err != nil || name != pay {
		t.Errorf("%q, %v", name, err)
	}

	p, _, companion := paired(t)
	_, err = p.Acts(companion.ID(), 1, anybody)
	refusal(t, err, api.CodeNotLeader)
}
