package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestALeaseLongerThanThoseInUseIsNotGranted: otherwise one request for a day's lease would block
// all others for a day, and again after each restart.
func TestALeaseLongerThanThoseInUseIsNotGranted(t *testing.T) {
	d := newDesk(t, state())
	r := asked(holderA, 1, roster3)
	r.Lease = testLease + time.Nanosecond
	d.voter.Request(at(0), "a", r)
	onlyRefusal(t, d.write(at(0)), election.RefusedLease)
	d.grant(at(1), holderB, 1)
}

// TestATermFarAboveThoseKnownIsNotGranted: such a grant would use up the terms, and no candidate
// could ask for a higher one.
func TestATermFarAboveThoseKnownIsNotGranted(t *testing.T) {
	for _, term := range []election.Term{election.MaxTerm, election.MaxTerm + 1, 1<<32 + 8, 1 << 63} {
		d := newDesk(t, state())
		d.grant(at(0), holderA, 7)
		d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 7, Holder: holderA})
		d.ask(at(2), holderB, term, 1, 0)
		onlyRefusal(t, d.write(at(2)), election.RefusedLeap)
		d.grant(at(3), holderB, 1<<32+7)
	}
}

// TestWhatIsLeftOfAPromiseFitsAMessage: the voter has a hold for a very long lease.
func TestWhatIsLeftOfAPromiseFitsAMessage(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: roster3, Grants: map[election.Name]election.Grant{
		"e": {Term: 1, Holder: holderA, Lease: 100 * time.Hour}}})
	if s := d.voter.Records(at(0)); len(s) != 1 || s[0].Remaining > Outlast(election.MaxLease, testDrift) {
		t.Fatalf("reports %+v", s)
	}
}
