package elector

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// TestAnAgentThatBeganAgainAloneStandsBackWhereItsClusterStillRuns: the agent lost its data
// directory, and formed a cluster of itself. It would lead beside its former cluster.
func TestAnAgentThatBeganAgainAloneStandsBackWhereItsClusterStillRuns(t *testing.T) {
	own := &election.Roster{Cluster: "new", Version: election.Version{Counter: 1}, Voters: []election.Voter{{Name: "a", Peer: "a"}}}
	for name, c := range map[string]struct {
		theirs election.Voter
		own    election.Version
		leads  bool
	}{
		"its name, another identity": {election.Voter{Name: "a", Peer: "former"}, own.Version, false},
		"another name":               {election.Voter{Name: "z", Peer: "former"}, own.Version, true},
		"its voters were changed":    {election.Voter{Name: "a", Peer: "former"}, election.Version{Driver: 3}, true},
	} {
		roster := *own
		roster.Version = c.own
		s := newSolo(t, func(_ *election.Config, st *election.State) { st.Roster = &roster })
		s.campaign(election.Default)
		s.pass(testTiming.Lease)
		if !s.leads(election.Default) {
			t.Fatalf("%s: it does not lead its own cluster", name)
		}
		s.clear()
		s.connect("b", election.Report{Voter: true, Stamp: 5, Roster: &election.Roster{Cluster: "old", Version: election.Version{Driver: 7},
			Voters: []election.Voter{c.theirs, {Name: "b", Peer: "b"}}}})
		if s.leads(election.Default) != c.leads || (len(s.withdrawn) == 0) != c.leads {
			t.Errorf("%s: leads %t, want %t", name, s.leads(election.Default), c.leads)
		}
		warned := false
		for _, w := range s.e.Status(s.now).Warnings {
			warned = warned || w.Code == "identity_changed"
		}
		if warned == c.leads {
			t.Errorf("%s: warned %t", name, warned)
		}
		s.pass(4 * testTiming.Lease)
		if s.leads(election.Default) != c.leads {
			t.Errorf("%s: four leases later it leads: %t", name, !c.leads)
		}
	}
}

// TestAnObserverOfADeadClusterBarsNobody: in a dead cluster no operator could do what the warning
// asks for. If a voter connects later, that cluster runs.
func TestAnObserverOfADeadClusterBarsNobody(t *testing.T) {
	own := &election.Roster{Cluster: "new", Version: election.Version{Counter: 1}, Voters: voters("a")}
	old := &election.Roster{Cluster: "old", Version: election.Version{Driver: 7},
		Voters: []election.Voter{{Name: "a", Peer: "former"}, {Name: "b", Peer: "b"}}}
	s := newSolo(t, func(_ *election.Config, st *election.State) { st.Roster = own })
	s.campaign(election.Default)
	s.pass(testTiming.Lease)
	s.connect("o", election.Report{Stamp: 5, Roster: old})
	s.connect("p", election.Report{Stamp: 5, Roster: old, Voter: true}) // p's roster does not name p
	s.pass(testTiming.Lease)
	warned := s.e.Status(s.now).Warnings
	if !s.leads(election.Default) || len(warned) != 2 || warned[0].Code != "foreign_cluster" || warned[0].Agent != "o" || !warned[0].Former {
		t.Errorf("an observer: leads %t, warnings %+v", s.leads(election.Default), warned)
	}
	s.connect("b", election.Report{Voter: true, Stamp: 5, Roster: old})
	if s.leads(election.Default) {
		t.Error("a voter after it: it leads beside the living cluster")
	}
}

// TestAClusterThatReportedFirstIsNoticedOnceTheOwnOneIsOnDisk: an agent starts alone, and a voter
// of the former cluster reports while the agent's roster is still being written.
func TestAClusterThatReportedFirstIsNoticedOnceTheOwnOneIsOnDisk(t *testing.T) {
	s := newSolo(t, func(_ *election.Config, st *election.State) { st.Roster = nil })
	s.stuck, s.e.cfg.Alone = true, true
	s.step(election.Tick{})
	s.connect("v", election.Report{Voter: true, Stamp: 5, Roster: &election.Roster{Cluster: "old", Version: election.Version{Driver: 7},
		Voters: []election.Voter{{Name: "a", Peer: "former"}, {Name: "v", Peer: "v"}}}})
	s.step(election.Persisted{Write: s.begun})
	s.campaign(election.Default)
	s.pass(2 * testTiming.Lease)
	if s.e.roster == nil || s.e.barred.Code != "identity_changed" || s.leads(election.Default) {
		t.Errorf("roster %v, barred %q, leads %t", s.e.roster, s.e.barred.Code, s.leads(election.Default))
	}
}
