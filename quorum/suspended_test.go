package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// The suspend lasts a tenth of a second, but the clock counts it as a second.
func TestV5ASuspendedVoterHoldsAsAfterAStart(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.voter.Suspended(at(1000))
	end := at(1000).Add(Outlast(testLease, testDrift))
	if got := d.voter.PromiseEnd("e"); got != end {
		t.Fatalf("the promise ends at %d, want %d", got, end)
	}
	d.ask(at(1001), holderB, 2, 1, 0)
	d.voter.Tick(at(1300))
	if out := d.write(at(1300)); len(out) != 0 {
		t.Fatalf("sent %+v to b while a may act", out)
	}
	if n := d.voter.Renew(at(1301), "a", renewal(holderA, 1)); len(n) != 0 {
		t.Fatal("a's own term is not renewed")
	}
	d.ask(at(2400), holderB, 2, 2, 0)
	d.voter.Tick(at(2401))
	if g := onlyGrant(t, d.write(at(2401))); g.Holder != holderB {
		t.Fatalf("granted %+v", g)
	}
}

// A released grant binds no voter. So its lease, possibly a longer one, causes no hold in another election.
func TestV5AReleasedLeaseHoldsNoOtherElection(t *testing.T) {
	st := state()
	st.Grants = map[election.Name]election.Grant{
		"e":   {Term: 1, Holder: holderA, Lease: testLease},
		"old": {Term: 3, Holder: holderB, Lease: election.MaxLease, Released: true},
	}
	d := newDesk(t, st)
	if got, want := d.voter.HoldEnd("e", holderB), at(0).Add(Outlast(testLease, testDrift)); got != want {
		t.Errorf("after a start e is held until %d, want %d", got, want)
	}
	d.voter.Suspended(at(50))
	if got, want := d.voter.HoldEnd("e", holderB), at(50).Add(Outlast(testLease, testDrift)); got != want {
		t.Errorf("after a suspend e is held until %d, want %d", got, want)
	}
}

// A waiting request is promised from its receipt. After a suspend, that instant is more recent than
// the clock shows.
func TestV4NoRequestFromBeforeASuspendIsGrantedAfterIt(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 2, 1, 0) // waits for the promise
	d.voter.Suspended(at(1100))
	d.voter.Release(at(1101), "a", election.Release{Election: "e", Term: 1, Holder: holderA})
	d.voter.Tick(at(1101))
	if out := d.write(at(1101)); len(out) != 0 {
		t.Errorf("a waiting request was answered: %+v", out)
	}

	d = newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	w := d.ledger.Next(at(0))
	d.ask(at(1), holderB, 2, 1, 0) // waits for the write, as does the release
	d.voter.Release(at(2), "a", election.Release{Election: "e", Term: 1, Holder: holderA})
	d.voter.Suspended(at(300))
	d.ledger.Persisted(w.Write)
	d.voter.Settle(at(301))
	if g := onlyGrant(t, d.write(at(301))); g.Holder != holderA {
		t.Errorf("a waiting request was granted: %+v", g)
	}
	if end := d.voter.PromiseEnd("e"); end != 0 {
		t.Errorf("the release was dropped with it: promised until %d", end)
	}
}

func TestR4AWaitForPromisesIsNotCountedAcrossASuspend(t *testing.T) {
	d := marked(t, ballot())
	accepts{d, at(0)}.by("abd", 1, time.Second)
	d.Recount() // at instant 100
	if d.Advance(at(2000)) {
		t.Fatal("went on by a clock that may have counted too much")
	}
	if d.HasAccepted("a") {
		t.Fatal("who accepted before is not asked again")
	}
	accepts{d, at(2000)}.by("abd", 1, 700*time.Millisecond)
	end := at(2000).Add(Outlast(700*time.Millisecond, testDrift))
	if d.Advance(end-1) || !d.Advance(end) {
		t.Fatalf("waits until %d, want %d", d.WaitsUntil(), end)
	}
}
