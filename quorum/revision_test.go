package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

const longLease = 3 * testLease

// leased is roster3 with the given lease, made by driver 5.
func leased(counter uint64, l time.Duration) *election.Roster {
	return newer(roster3, election.Version{Driver: 5, Counter: counter}, func(r *election.Roster) { r.Settings.Lease = l })
}

// renew makes the voter renew term 1 for a, at the voter's own roster version.
func (d *desk) renew(now election.Instant) []election.Nack {
	h := renewal(holderA, 1)
	h.Version = d.voter.Roster().Version
	return d.voter.Renew(now, "a", h)
}

func (d *desk) adopt(now election.Instant, r *election.Roster) {
	d.t.Helper()
	d.voter.Adopt(now, r, false)
	if d.write(now); d.voter.Roster().Version != r.Version {
		d.t.Fatalf("holds %v, want %v", d.voter.Roster().Version, r.Version)
	}
}

func TestR14ARenewalPromisesTheLeaseOfTheRoster(t *testing.T) {
	for _, l := range []time.Duration{testLease / 2, longLease} {
		d := newDesk(t, state())
		d.grant(at(0), holderA, 1)
		d.adopt(at(1), leased(0, l))
		if nacks := d.renew(at(990)); len(nacks) != 0 {
			t.Fatalf("nacks %v: the new lease must not disturb the term", nacks)
		}
		if got, want := d.voter.PromiseEnd("e"), at(990).Add(l); got != want {
			t.Errorf("lease %v: promised until %d, want %d", l, got, want)
		}
	}
}

func TestR14AShorterLeaseCutsNoPromise(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.adopt(at(1), leased(0, testLease/4))
	d.renew(at(2))
	if got := d.voter.PromiseEnd("e"); got != at(0).Add(testLease) {
		t.Errorf("promised until %d, want %d: V4", got, at(0).Add(testLease))
	}
}

func TestR14AHoldLastsForTheLeaseOfTheRoster(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.adopt(at(1), leased(0, longLease))
	d.renew(at(2))
	d.start(at(3))
	if got, want := d.voter.HoldEnd("e", holderB), at(3).Add(Outlast(longLease, testDrift)); got != want {
		t.Errorf("holds until %d, want %d: the promise of the renewal", got, want)
	}
}

func TestR14ALongerLeaseStaysOnRecordWhenItsRosterGoes(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.adopt(at(1), leased(0, longLease))
	d.renew(at(2))
	d.adopt(at(3), leased(1, testLease/2))
	d.start(at(4))
	if got, want := d.voter.HoldEnd("e", holderB), at(4).Add(Outlast(longLease, testDrift)); got != want {
		t.Errorf("holds until %d, want %d: what the former roster had it promise", got, want)
	}
}

func TestR14AHolderCountsTheLeaseOfTheRoster(t *testing.T) {
	l := NewLease(1, testLease, testDrift, roster3)
	try := func(r *election.Roster, sent election.Instant, want time.Duration) {
		t.Helper()
		l.Reroster(r)
		l.Count("a", sent, r.Version)
		l.Count("b", sent, r.Version)
		if got := sent.Add(HolderLease(want, testDrift)); l.End() != got {
			t.Fatalf("counts until %d, want %d: a lease of %v", l.End(), got, want)
		}
	}
	try(roster3, at(0), testLease)
	try(leased(0, longLease), at(1), longLease)
	try(leased(1, testLease/2), at(5000), testLease/2)
	// The last roster sets no lease. Its voters may have on record the shortest lease that was ever asked for.
	try(leased(2, 0), at(9000), testLease/2)
}

func TestR14OnlyTheLeaseOfTheRosterIsGranted(t *testing.T) {
	d := newDesk(t, state())
	d.adopt(at(0), leased(0, testLease/2))
	d.ask(at(1), holderA, 1, 1, 0)
	onlyRefusal(t, d.write(at(1)), election.RefusedLease)
}

func TestR14ARevisionIsOneProposalToOneMajority(t *testing.T) {
	stable := &election.Roster{Cluster: "x", Version: election.Version{Driver: 3, Counter: 2}, Voters: peersOf("abc"), Floor: 4}
	changed := *stable
	changed.Settings.Algorithm = "ring"
	d := NewRevision(7, testDrift, stable, &changed)
	wantProposal(t, d, election.Version{Driver: 7}, "abc", "", false, 4)
	if d.Proposal().Settings.Algorithm != "ring" {
		t.Fatalf("proposes %+v", d.Proposal().Settings)
	}
	accepts{d, at(0)}.by("a", 99, testLease)
	if d.Done() {
		t.Fatal("done with one voter of three")
	}
	accepts{d, at(0)}.by("b", 99, testLease)
	if !d.Done() || d.Advance(at(0)) || d.Proposal().Floor != 4 || d.GoBack() {
		t.Fatalf("done %v, proposes %+v: want an end without a wait, a floor, or a way back", d.Done(), d.Proposal())
	}
}

func TestR4AChangeOfTheLeaseWaitsForWhatWasPromisedBefore(t *testing.T) {
	stable := &election.Roster{Cluster: "x", Version: election.Version{Driver: 3, Counter: 2}, Voters: peersOf("abc")}
	d := NewRevision(7, testDrift, stable, leased(0, longLease))
	accepts{d, at(0)}.by("ab", 9, testLease)
	end := at(0).Add(Outlast(testLease, testDrift))
	d.Advance(end - 1)
	if d.Done() || d.WaitsUntil() != end {
		t.Fatalf("done %v, waits until %d, want %d", d.Done(), d.WaitsUntil(), end)
	}
	if d.Advance(end); !d.Done() {
		t.Fatal("not done when all former promises have ended")
	}
}

func TestR15AVoterGrantsAndRenewsOnlyWhatTheRightsAllow(t *testing.T) {
	allow := func(counter uint64, r ...election.Right) *election.Roster {
		return newer(roster3, election.Version{Driver: 5, Counter: counter}, func(x *election.Roster) { x.Rights = r })
	}
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.adopt(at(1), allow(0, election.Right{Election: "e", Agents: []election.PeerID{"b"}, MaxPriority: 7}))
	if nacks := d.renew(at(2)); len(nacks) != 1 {
		t.Fatal("renewed a term of an agent that may not lead any more")
	}
	d.ask(at(3), holderA, 1, 2, 7)
	onlyRefusal(t, d.write(at(3)), election.RefusedRight)
	if got := d.voter.PromiseEnd("e"); got != at(0).Add(testLease) {
		t.Fatalf("the promise ends at %d, want %d: it outlives the rule", got, at(0).Add(testLease))
	}
	d.ask(at(1100), holderB, 2, 1, 8)
	onlyRefusal(t, d.write(at(1100)), election.RefusedRight)
	d.ask(at(1100), holderB, 2, 2, 7)
	onlyGrant(t, d.write(at(1100)))
	d.adopt(at(1200), allow(1, election.Right{Election: "other", Agents: []election.PeerID{"b"}}))
	d.ask(at(3000), holderA, 3, 3, 100)
	onlyGrant(t, d.write(at(3000)))
}
