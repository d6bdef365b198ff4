package roster

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// alone gives the facts of an agent that is the only voter. It leads if the field lead says so.
type alone struct {
	now  election.Instant
	lead Lead
}

func (f alone) Now() election.Instant           { return f.now }
func (alone) Connected() []election.PeerID      { return nil }
func (alone) Peer(election.PeerID) *Peer        { return nil }
func (alone) Reachable(id election.PeerID) bool { return id == "a" }
func (alone) Older(election.PeerID) bool        { return false }
func (alone) NameOf(id election.PeerID) string  { return string(id) }
func (f alone) Lead() Lead                      { return f.lead }
func (alone) Obstacle() election.Obstacle       { return 0 }

// TestARevisionIsDrivenByWhoWasElectedUnderTheRosterThatItRevises: voters with an earlier roster may
// count an earlier lease (R14). An agent that they elected must be elected again before it drives.
func TestARevisionIsDrivenByWhoWasElectedUnderTheRosterThatItRevises(t *testing.T) {
	present := &election.Roster{Cluster: "c", Version: election.Version{Driver: 4, Counter: 2}, Voters: []election.Voter{{Name: "a", Peer: "a"}}}
	earlier := *present
	earlier.Version = election.Version{Driver: 4, Counter: 1}
	for _, c := range []struct {
		what   string
		wonBy  *election.Roster
		drives bool
	}{
		{"elected under the present roster", present, true},
		{"elected under an earlier roster", &earlier, false},
		{"elected under a roster that is not known any more", nil, false},
	} {
		cfg := election.Config{Self: election.Holder{Peer: "a", Lineage: 1}, Quorum: true,
			Timing: election.Timing{Heartbeat: 100 * time.Millisecond, Lease: time.Second}}
		ledger := quorum.NewLedger(election.State{Roster: present}, time.Second)
		change := New(&cfg, &cfg, ledger, quorum.NewVoter(cfg, ledger, 0), nil)
		f := alone{now: 1, lead: Lead{Leader: "a", Term: 5, Until: election.Instant(time.Second), WonBy: c.wonBy}}
		asked := change.Command(f, election.ChangeRoster{Request: 1, Settings: election.Settings{Lease: 2 * time.Second}})
		if len(asked.Replies) != 0 {
			t.Fatalf("%s: the command was refused: %+v", c.what, asked.Replies[0])
		}
		v := change.Advance(f)
		if proposes := len(v.Send) == 1; proposes != c.drives {
			t.Errorf("%s: sends %+v; drives should be %t", c.what, v.Send, c.drives)
		}
		if v.Withdraw == c.drives {
			t.Errorf("%s: withdraws %t; one that does not drive leads no longer, and asks again", c.what, v.Withdraw)
		}
	}
}
