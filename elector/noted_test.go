package elector

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// The harness compares after each step what is kept about peers and members with what they are now (unseen).

func TestAWarningOfAPeerEndsWithItsConnection(t *testing.T) {
	s := newSolo(t, nil)
	newer := *soloRoster
	newer.Version.Counter++
	s.connect("d", election.Report{Roster: &newer, Stamp: 5})
	if !s.warns("roster_doubted") {
		t.Error("no warning of a newer roster of an agent that is no voter")
	}
	s.step(election.PeerLost{Peer: "d"})
	if s.warns("roster_doubted") {
		t.Error("it warns of an agent that is not connected")
	}
}

// TestAVotersNameWithAnotherIdentityIsNoticed by an agent whose view, or whose roster, comes last.
func TestAVotersNameWithAnotherIdentityIsNoticed(t *testing.T) {
	s := newSolo(t, nil)
	view := election.View{Members: slices.Concat(s.view.Members, []election.Member{{Peer: "z", Lineage: 1, Name: "c"}})}
	s.step(election.ViewChanged{View: view})
	if !s.warns("identity_changed") {
		t.Error("no warning of a member with a voter's name")
	}
	s.step(election.ViewChanged{View: s.view})
	if s.warns("identity_changed") {
		t.Error("it warns of an agent that is not a member")
	}

	s = newSolo(t, func(_ *election.Config, st *election.State) { st.Roster = nil })
	s.step(election.ViewChanged{View: view})
	later := *soloRoster
	later.Version.Counter++ // as a first roster, it would show that this agent's record of it is lost
	s.hear("b", election.Report{Voter: true, Roster: &later, Stamp: 6})
	if !s.warns("identity_changed") {
		t.Error("no warning once the roster is known")
	}
}

// TestAForeignPeerThatComesOverIsAPeerAgain with what it has sent before: its candidacies count for more than gossip.
func TestAForeignPeerThatComesOverIsAPeerAgain(t *testing.T) {
	s := newSolo(t, nil)
	s.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "default", Priority: 200}}})
	s.hear("b", election.Report{Roster: &election.Roster{Cluster: "y", Version: election.Version{Counter: 1}, Voters: voters("b")}, Stamp: 6})
	if !s.warns("foreign_cluster") || len(s.status("default").Candidates) != 1 {
		t.Fatalf("candidates are %v, want c alone", s.status("default").Candidates)
	}
	s.hear("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 7})
	if c := s.status("default"); s.warns("foreign_cluster") || len(c.Candidates) != 2 || c.Candidates[0] != "b" {
		t.Errorf("candidates are %v, want b before c", c.Candidates)
	}
	s.hear("b", election.Heartbeat{Lineage: 1, Send: 1, Version: soloRoster.Version})
	s.pass(testTiming.Lease)
	if c := s.status("default"); slices.Contains(c.Candidates, "b") {
		t.Errorf("candidates are %v, though the heartbeats of b are overdue", c.Candidates)
	}
}
