package elector

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/roster"
)

// elsewhere is a roster with those voters. A copy of the cluster of a, b and c could have reached
// it by some changes.
func elsewhere(names ...string) *election.Roster {
	r := *trioState().Roster
	r.Version, r.Voters = election.Version{Driver: 9, Counter: 2}, voters(names...)
	return &r
}

func (s *solo) holds() string { return strings.Join(election.Names(s.e.roster.All(), nil), ",") }

// tells makes a connected peer report that roster.
func (s *solo) tells(from election.PeerID, r *election.Roster) {
	s.hear(from, election.Report{Voter: true, Roster: r})
}

func TestARosterIsTakenOverFromVotersAlone(t *testing.T) {
	s := newLone(t, trioState())
	s.connect("z", election.Report{})
	s.tells("z", elsewhere("a", "b", "z"))
	if s.holds() != "a,b,c" {
		t.Fatalf("the voters are %s, at the word of a stranger", s.holds())
	}
	doubted := false
	for _, w := range s.e.Status(s.now).Warnings {
		doubted = doubted || w.Code == "roster_doubted" && w.Agent == "z" && w.Voters == "a,b,z" && w.Doubt == roster.FromUnknown
	}
	if !doubted {
		t.Fatalf("warnings %+v, want one of the roster that z tells of", s.e.Status(s.now).Warnings)
	}
	s.tells("b", elsewhere("a", "b", "z"))
	if s.holds() != "a,b,z" {
		t.Fatalf("the voters are %s, though a voter told of a change (R2)", s.holds())
	}
	for _, w := range s.e.Status(s.now).Warnings {
		if w.Code == "roster_doubted" {
			t.Fatalf("still warns: %+v", w)
		}
	}
}

func TestR5TheFloorHeldStaysWithARosterThatHasALowerOne(t *testing.T) {
	low := elsewhere("a", "b", "z")
	low.Floor = 39
	told := map[string]func(*solo){
		"reported": func(s *solo) { s.tells("b", low) },
		"proposed": func(s *solo) {
			s.hear("b", election.RosterPropose{Driver: 9, Holder: election.Holder{Peer: "b", Lineage: 1}, Roster: *low})
		},
	}
	for name, tell := range told {
		t.Run(name, func(t *testing.T) {
			state := trioState()
			state.Roster.Floor = 40
			s := newLone(t, state)
			tell(s)
			s.step(election.Tick{})
			if r := s.disk.Roster; s.holds() != "a,b,z" || r.Version != low.Version || r.Floor != 40 || s.e.roster.Floor != 40 {
				t.Fatalf("holds %s, %+v; want the newer voters, and the floor 40", s.holds(), r)
			}
			s.take()
			s.hear("b", election.VoteRequest{Election: "x", Term: 40, Holder: election.Holder{Peer: "b", Lineage: 1},
				Rank: election.Rank{Peer: "b"}, Lease: testTiming.Lease, Send: 1, Roster: *low})
			refusals := sentTo[election.VoteRefusal](s.take(), "b")
			if len(refusals) != 1 || refusals[0].Reason != election.RefusedFloor || refusals[0].Roster == nil || refusals[0].Roster.Floor != 40 {
				t.Fatalf("answers %+v, want a refusal that tells of the floor", refusals)
			}
		})
	}
}

// Ballot 5 proposed the outcome of a change only to a. Ballot 9 continues the change from its mark,
// whose floor is the one from before the change.
func TestR3AChangeProposedAgainIsAcceptedByAVoterThatHoldsItsEnd(t *testing.T) {
	for _, driver := range []election.PeerID{"b", "c"} {
		t.Run(string(driver), func(t *testing.T) {
			again := election.Roster{Cluster: trioState().Roster.Cluster, Version: election.Version{Driver: 9},
				Voters: voters("a", "b", "c"), Next: voters("a", "b", "d"), Committed: true}
			end := &election.Roster{Cluster: again.Cluster, Version: election.Version{Driver: 5, Counter: 2}, Voters: voters("a", "b", "d"), Floor: 7}
			s := newLone(t, election.State{Roster: end, Grants: map[election.Name]election.Grant{}})
			s.connect("c", election.Report{})
			p := election.RosterPropose{Driver: 9, Holder: election.Holder{Peer: driver, Lineage: 1}, Roster: again}
			s.hear(driver, p)
			if driver == "c" { // a does not know this voter: a voter that it knows must report the roster
				if s.e.roster.Version != end.Version {
					t.Fatal("takes over a proposal of a driver that is not a voter it knows")
				}
				s.tells("b", &again)
				s.hear(driver, p)
			}
			s.step(election.Tick{})
			accepted := sentTo[election.RosterAccept](s.take(), driver)
			if len(accepted) == 0 || s.e.roster.Version != again.Version {
				t.Fatalf("holds %v, dropped %v; want the change proposed again accepted", s.e.roster.Version, s.e.Counters().Dropped)
			}
			if got := accepted[0].Highest; got < 7 || s.e.roster.Floor != 7 {
				t.Fatalf("tells of the term %d, holds the floor %d: want 7, which must not fall", got, s.e.roster.Floor)
			}
		})
	}
}

func TestAProposalOfAStrangerIsRefused(t *testing.T) {
	s := newLone(t, trioState())
	s.connect("z", election.Report{})
	p := election.RosterPropose{Driver: 9, Holder: election.Holder{Peer: "z", Lineage: 1}, Roster: *elsewhere("a", "b", "z")}
	s.hear("z", p)
	if s.holds() != "a,b,c" || len(sentTo[election.RosterAccept](s.take(), "z")) > 0 {
		t.Fatalf("the voters are %s, at a stranger's proposal", s.holds())
	}
}

// In a copy of production, all voters were replaced; then it connects to production. The copy's b
// counts as b. An agent that missed as many real changes would find no voter that still has the old
// roster.
func TestAClonedClusterDoesNotReplaceTheVoters(t *testing.T) {
	s := newLone(t, trioState())
	held := s.e.roster
	s.tells("b", held)
	s.tells("c", held)
	clones := elsewhere("x", "y", "z")
	s.take()
	s.tells("b", clones)
	if s.holds() != "a,b,c" {
		t.Fatalf("the voters are %s, though a and c hold the old ones", s.holds())
	}
	if len(sentTo[election.Inquiry](s.take(), "c")) == 0 {
		t.Fatal("c is not asked what it holds now")
	}
	s.tells("c", clones) // what c would have reported after such changes
	s.tells("b", clones)
	if s.holds() != "x,y,z" {
		t.Fatalf("the voters are %s: an agent that was away for long does not catch up", s.holds())
	}
	if f := s.disk.Former; f == nil || f.Version != held.Version {
		t.Fatalf("kept %+v on disk, want the former roster", f)
	}

	s.step(election.ChangeRoster{Restore: true, Request: 1})
	s.step(election.Tick{})
	if s.holds() != "a,b,c" || s.disk.Former != nil || s.disk.Roster.Version != held.Version {
		t.Fatalf("the voters are %s after the way back", s.holds())
	}
	s.tells("b", clones)
	if s.holds() != "a,b,c" {
		t.Fatal("takes over again what an operator refused")
	}
	s.replies = nil
	s.step(election.ChangeRoster{Restore: true, Request: 2})
	if len(s.replies) != 1 || s.replies[0].Refusal == nil || s.replies[0].Refusal.Why != election.DeniedNothingToGoBack {
		t.Fatalf("%+v, want not_found: there is nothing to restore", s.replies)
	}
}

// The new voters' driver went back to a alone, and died before a learned of it. These voters do not
// vote any more under the change. So a can lead only after it has adopted the outcome.
func TestTheOutcomeOfAMarkedChangeIsTakenOverThoughTheFormerHalfHasNotHeard(t *testing.T) {
	state := trioState()
	r := state.Roster
	r.Version = election.Version{Driver: 3}
	r.Voters, r.Next, r.Committed = voters("a"), voters("b", "c"), true
	s := newLone(t, state)
	s.tells("b", r)
	s.tells("c", r)
	back := elsewhere("a")
	s.tells("b", back)
	if s.holds() != "a" {
		t.Fatalf("a holds %s, though half of the new voters have gone on", s.holds())
	}
}

// A voter can't take back what it accepted from a driver: ballots rely on it.
func TestAnAcceptedRosterIsNotRestored(t *testing.T) {
	s := newLone(t, trioState())
	far := elsewhere("a", "y", "z")
	s.step(election.PeerLost{Peer: "c"})
	s.tells("b", far)
	if s.holds() != "a,y,z" || s.disk.Former == nil {
		t.Fatalf("the voters are %s, kept %+v", s.holds(), s.disk.Former)
	}
	s.connect("y", election.Report{})
	s.hear("y", election.RosterPropose{Driver: 9, Holder: election.Holder{Peer: "y", Lineage: 1}, Roster: *far})
	s.step(election.Tick{})
	if s.disk.Former != nil {
		t.Fatal("keeps a way back behind a ballot")
	}
}
