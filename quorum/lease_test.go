package quorum

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
)

func TestH3TheLeaseCountsFromTheSendOfAMajority(t *testing.T) {
	l := NewLease(1, testLease, testDrift, roster3)
	l.Count("a", at(100), roster3.Version)
	if l.End() != 0 {
		t.Fatal("one voter of three made a lease")
	}
	l.Count("b", at(50), roster3.Version)
	want := at(50).Add(HolderLease(testLease, testDrift))
	if l.End() != want {
		t.Fatalf("ends at %d, want %d: from the older of the two sends", l.End(), want)
	}
	l.Count("b", at(20), roster3.Version) // an older ack that arrives late
	l.Count("v", at(90), election.Version{Counter: 2})
	l.Count("stranger", at(90), roster3.Version)
	if l.End() != want {
		t.Fatalf("a stale, a foreign or another version's answer moved the end to %d", l.End())
	}
	l.Count("v", at(90), roster3.Version)
	if want = at(90).Add(HolderLease(testLease, testDrift)); l.End() != want {
		t.Fatalf("ends at %d, want %d", l.End(), want)
	}
}

func TestH3AMarkedJointRosterNeedsBothHalves(t *testing.T) {
	joint := *roster3
	joint.Next, joint.Committed = []election.Voter{{Name: "x", Peer: "x"}}, true
	l := NewLease(1, testLease, testDrift, &joint)
	l.Count("a", at(1), joint.Version)
	l.Count("b", at(1), joint.Version)
	if l.End() != 0 {
		t.Fatal("the old half alone made a lease")
	}
	l.Count("x", at(1), joint.Version)
	if l.End() == 0 {
		t.Fatal("both halves made no lease")
	}
}

func TestR6EarnedLeaseStaysGoodUnderANewRoster(t *testing.T) {
	l := NewLease(1, testLease, testDrift, roster3)
	l.Count("a", at(10), roster3.Version)
	l.Count("b", at(20), roster3.Version)
	end := l.End()
	next := *roster3
	next.Version.Counter = 2
	l.Reroster(&next)
	l.Count("v", at(30), next.Version)
	if l.End() != end {
		t.Fatal("answers at two versions were mixed")
	}
}

// TestTheMarginsHoldForAllDrifts shows the inequality behind H3 and V5, on any two clocks within
// the drift. The holder's lease, counted from its send, ends before the voter's promise, counted
// from the receipt, and before any later hold.
func TestTheMarginsHoldForAllDrifts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drift := rapid.Float64Range(0, 0.1).Draw(t, "drift")
		lease := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "lease"))
		slow, fast := 1-drift, 1+drift // local seconds per real second
		holderReal := float64(HolderLease(lease, drift)) / slow
		voterReal := float64(lease) / fast
		if holderReal > voterReal+1 {
			t.Fatalf("a slow holder acts %v, a fast voter promises %v", holderReal, voterReal)
		}
		// A grant made on a slow clock lasts lease/slow; a restarted voter on a fast one holds Outlast/fast.
		if float64(lease)/slow > float64(Outlast(lease, drift))/fast+1 {
			t.Fatalf("the hold is shorter than the longest promise")
		}
	})
}

// TestSupportedSinceIsWhatADumbSearchFinds compares the result with the definition: the latest
// instant such that the voters counted at that instant or later are a majority.
func TestSupportedSinceIsWhatADumbSearchFinds(t *testing.T) {
	peers := []election.PeerID{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		half := func(name string, least int) (vs []election.Voter) {
			for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(peers), least, 5, rapid.ID).Draw(t, name) {
				vs = append(vs, election.Voter{Peer: p})
			}
			return vs
		}
		r := &election.Roster{Voters: half("voters", 1), Next: half("next", 0)}
		r.Committed = r.Joint() && rapid.Bool().Draw(t, "committed")
		sends := map[election.PeerID]election.Instant{}
		for _, p := range peers {
			if rapid.Bool().Draw(t, "acked") {
				sends[p] = election.Instant(rapid.IntRange(1, 9).Draw(t, "at"))
			}
		}
		got, ok := supportedSince(r, sends)
		var want election.Instant
		for s := election.Instant(1); s <= 9; s++ {
			if Confirmed(r, func(p election.PeerID) bool { return sends[p] >= s }) {
				want = s
			}
		}
		if ok != (want > 0) || ok && got != want {
			t.Fatalf("got %d %v, want %d", got, ok, want)
		}
	})
}

func TestSendsForgetWhatIsWorthNothing(t *testing.T) {
	s := NewSends(testLease, 0)
	first := s.Next(at(0))
	if again := s.Next(at(0)); again == first {
		t.Fatalf("two sends of one instant share the number %d", first)
	}
	for ms := 1; ms < 5000; ms++ {
		s.Next(at(ms))
	}
	if _, ok := s.At(first); ok {
		t.Fatal("a send older than a lease is still remembered")
	}
	if len(s.log) > 1003 {
		t.Fatalf("%d sends remembered, want about a lease's worth", len(s.log))
	}
}
