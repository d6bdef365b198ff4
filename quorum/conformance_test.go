package quorum

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
)

// C. Gray and D. Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File
// Cache Consistency", SOSP 1989. In the paper one server grants leases. Here a majority of voters
// does, and each voter acts like that server.

// TestGrayCheriton1989TheHoldersTermIsTheShorter shows the paper's effective term. The holder
// counts from its send, with an allowance for clock drift; the voter counts from the receipt. The
// holder's lease always ends first, however long messages take.
func TestGrayCheriton1989TheHoldersTermIsTheShorter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := func(who string) float64 {
			return rapid.Float64Range(1-testDrift, 1+testDrift).Draw(t, who+"'s clock rate")
		}
		holder, voter := rate("holder"), rate("voter")
		way := rapid.Int64Range(0, int64(testLease)).Draw(t, "request's way")
		sent := election.Instant(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "holder's clock at the send"))

		l := NewLease(1, testLease, testDrift, roster3)
		l.Count("a", sent, roster3.Version)
		l.Count("b", sent, roster3.Version)
		holderEnds := float64(l.End()-sent) / holder // in true time since the send
		voterEnds := float64(way) + float64(testLease)/voter
		if holderEnds > voterEnds {
			t.Fatalf("the holder acts %v, the promise ends after %v", holderEnds, voterEnds)
		}
	})
}

// TestGrayCheriton1989AConflictWaitsNoLongerThanTheLease shows that an unreachable holder delays
// others until its lease ends, and no longer.
func TestGrayCheriton1989AConflictWaitsNoLongerThanTheLease(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	end := at(0).Add(testLease)
	d.ask(end-1, holderB, 2, 1, 0)
	if out := d.write(end - 1); len(out) != 0 {
		t.Fatalf("answered %+v while the promise runs", out)
	}
	if wake := d.voter.WakeAt(); wake != end {
		t.Fatalf("wakes at %d, want the end of the promise at %d", wake, end)
	}
	d.voter.Tick(end)
	if got := onlyGrant(t, d.write(end)); got.Holder != holderB {
		t.Fatalf("granted to %s, want %s", got.Holder, holderB)
	}
}

// TestGrayCheriton1989ExtensionKeepsTheLease shows that no other holder gets a grant while the
// present holder asks again in time.
func TestGrayCheriton1989ExtensionKeepsTheLease(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	for ms := 500; ms <= 5000; ms += 500 {
		nacks := d.voter.Renew(at(ms), "a", election.Heartbeat{Lineage: 1, Send: election.SendID(ms), Version: roster3.Version,
			Claims: []election.Claim{{Election: "e", Term: 1}}})
		if len(nacks) != 0 {
			t.Fatalf("at %d ms the renewal is refused: %+v", ms, nacks)
		}
		if want := at(ms).Add(testLease); d.voter.PromiseEnd("e") != want {
			t.Fatalf("at %d ms the promise ends at %d, want %d", ms, d.voter.PromiseEnd("e"), want)
		}
	}
}

// TestGrayCheriton1989ReleaseFreesAtOnce shows that after a release no other holder has to wait.
func TestGrayCheriton1989ReleaseFreesAtOnce(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 1, Holder: holderA})
	d.grant(at(2), holderB, 2)
}

// TestGrayCheriton1989ARestartedServerHonoursItsLeases: after a crash a voter grants nothing to
// other holders until the longest lease that it may have granted has ended on every clock. Then it
// grants again.
func TestGrayCheriton1989ARestartedServerHonoursItsLeases(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.start(at(10))
	over := at(10).Add(Outlast(testLease, testDrift))
	d.ask(over-1, holderB, 2, 1, 0)
	if out := d.write(over - 1); len(out) != 0 {
		t.Fatalf("answered %+v during the hold", out)
	}
	d.voter.Tick(over)
	if got := onlyGrant(t, d.write(over)); got.Holder != holderB {
		t.Fatalf("granted to %s after the hold, want %s", got.Holder, holderB)
	}
}
