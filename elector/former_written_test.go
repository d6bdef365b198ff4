package elector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// writesItsOwn is an agent that starts alone, and is writing its first roster.
func writesItsOwn(t *testing.T) *solo {
	t.Helper()
	s := startsWithout(t, true)
	if s.begun == 0 {
		t.Fatal("it writes no roster")
	}
	return s
}

// startsWithout is an agent that has no roster yet, and whose disk is slow.
func startsWithout(t *testing.T, alone bool) *solo {
	t.Helper()
	cfg := election.Config{Self: soloSelf, Name: "a", JoinedAt: 'a', Quorum: true, Alone: alone, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift}
	s := &solo{t: t, now: at(60_000), stuck: true, view: election.View{Members: []election.Member{member("a", 100), member("b", 100)}}}
	e, err := New(cfg, election.State{Peer: "a"}, nil, s.now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	s.e = e
	s.view.Members[0].Lineage = soloSelf.Lineage
	s.step(election.ViewChanged{View: s.view})
	s.campaign(election.Default)
	return s
}

// formerOf is the Report of b, which leads a cluster with a voter of that name.
func formerOf(name string) election.Report {
	leads := election.Record{Election: election.Default, Term: 14, Holder: election.Holder{Peer: "b", Lineage: 1}, Remaining: testTiming.Lease}
	return election.Report{Voter: true, Stamp: 5, Records: []election.Record{leads}, Roster: &election.Roster{Cluster: "old", Version: election.Version{Driver: 7},
		Voters: []election.Voter{{Name: name, Peer: "former"}, {Name: "b", Peer: "b"}}}}
}

// written completes the write of the first roster, and all later writes.
func (s *solo) written() {
	s.stuck = false
	s.step(election.Persisted{Write: s.begun})
	s.pass(2 * testTiming.Lease)
}

// TestAnAgentAloneMeetsItsFormerClusterBeforeItsOwnIsOnDisk: the former cluster reports only once,
// when it connects. An agent with a slow disk ignored that report, and from then on led beside the
// former cluster.
func TestAnAgentAloneMeetsItsFormerClusterBeforeItsOwnIsOnDisk(t *testing.T) {
	for name, leads := range map[string]bool{"a": false, "z": true} {
		s := writesItsOwn(t)
		s.connect("b", formerOf(name))
		s.clear()
		s.written()
		if slices.ContainsFunc(s.e.Status(s.now).Warnings, func(w Warning) bool { return w.Code == "identity_changed" }) == leads {
			t.Errorf("its cluster knew %s: warned %t", name, leads)
		}
		if slices.ContainsFunc(s.announced, func(x election.Announcement) bool { return x.Event == election.Leading }) != leads {
			t.Errorf("its cluster knew %s: it led a cluster of its own, for a moment: %t", name, !leads)
		}
		if s.leads(election.Default) != leads {
			t.Errorf("its cluster knew %s: it leads a cluster of its own: %t", name, !leads)
		}
		told := false
		for _, m := range s.sent {
			r, ok := m.Message.(election.Report)
			told = told || ok && m.To == "b" && r.Roster != nil && r.Roster.Cluster != "old"
		}
		if !told {
			t.Errorf("its cluster knew %s: b does not hear that this agent is of another cluster, and asks it for ever", name)
		}
	}
}

// TestAnAgentAloneFollowsNobodyWhileItsRosterIsWritten: otherwise it would name another cluster's
// leader in a high term, and then lead in a low one.
func TestAnAgentAloneFollowsNobodyWhileItsRosterIsWritten(t *testing.T) {
	beat := election.Heartbeat{Lineage: 1, Send: 6, Echo: at(60_000), Version: election.Version{Driver: 7},
		Claims: []election.Claim{{Election: election.Default, Term: 14, Remaining: testTiming.Lease}}}
	for name, first := range map[string]bool{"before its Report": true, "after it": false} {
		s := writesItsOwn(t)
		s.step(election.PeerConnected{Peer: "b", Lineage: 1})
		if !first {
			s.hear("b", formerOf("z"))
		}
		s.hear("b", beat)
		for _, c := range s.e.Contests() {
			if c.Leader.Peer != "" {
				t.Errorf("a Heartbeat %s: it names %v in term %d", name, c.Leader, c.Term)
			}
		}
		if first {
			s.hear("b", formerOf("z"))
		}
		s.written()
		if c := s.e.Contests()[0]; c.State != Leading || c.Term != 1 {
			t.Errorf("a Heartbeat %s: %s in term %d, want leading in term 1", name, c.State, c.Term)
		}
	}
}

// TestTheRosterThatIsWrittenSaysWhoTellsOfTerms: another peer claims to be a voter of a newer
// roster, which no voter confirms.
func TestTheRosterThatIsWrittenSaysWhoTellsOfTerms(t *testing.T) {
	s := startsWithout(t, false)
	s.connect("b", election.Report{Voter: true, Stamp: 5, Roster: &election.Roster{Cluster: "old", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "b", Peer: "b"}}}})
	if s.begun == 0 {
		t.Fatal("it writes no roster")
	}
	r := formerOf("z")
	r.Roster.Voters = append(r.Roster.Voters, election.Voter{Name: "y", Peer: "y"})
	s.connect("y", r)
	if c := s.e.contests.get(election.Default); c.Highest() != 0 {
		t.Errorf("it learnt term %d from who is not a voter of the roster that is being written", c.Highest())
	}
}
