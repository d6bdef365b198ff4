package quorum

import (
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// TestTwoMajoritiesAlwaysShareAVoter shows what every promise rests on, and
// that no more is asked for than that takes.
func TestTwoMajoritiesAlwaysShareAVoter(t *testing.T) {
	for n := 1; n <= 9; n++ {
		switch m := Majority(n); {
		case 2*m <= n:
			t.Errorf("of %d voters %d decide: two such groups need not share one", n, m)
		case 2*(m-1) > n:
			t.Errorf("of %d voters %d decide, one less would do", n, m)
		}
	}
}

func TestR4AJointRosterConfirmsByAMajorityOfEachHalf(t *testing.T) {
	r := &election.Roster{}
	for i := range 3 {
		r.Voters = append(r.Voters, election.Voter{Peer: election.PeerID(fmt.Sprint("old", i))})
		r.Next = append(r.Next, election.Voter{Peer: election.PeerID(fmt.Sprint("new", i))})
	}
	for _, c := range []struct {
		who  []election.PeerID
		want bool
	}{
		{[]election.PeerID{"old0", "old1", "old2"}, false},
		{[]election.PeerID{"new0", "new1", "new2"}, false},
		{[]election.PeerID{"old0", "old1", "old2", "new0"}, false},
		{[]election.PeerID{"old0", "new0", "new1", "new2"}, false},
		{[]election.PeerID{"old0", "old1", "new1", "new2"}, true},
	} {
		has := map[election.PeerID]bool{}
		for _, p := range c.who {
			has[p] = true
		}
		if got := Confirmed(r, func(p election.PeerID) bool { return has[p] }); got != c.want {
			t.Errorf("%v confirm: %v, want %v", c.who, got, c.want)
		}
	}
	if Confirmed(nil, func(election.PeerID) bool { return true }) {
		t.Error("somebody confirms without a roster")
	}
}
