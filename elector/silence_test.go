package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// redials counts, for each peer, how often a asks for a new connection within that time. b and c
// answer as given.
func (s *solo) redials(span time.Duration, answers func(p election.PeerID, h election.Heartbeat)) map[election.PeerID]int {
	s.t.Helper()
	n := map[election.PeerID]int{}
	for end := s.now.Add(span); s.now < end; {
		s.pass(testTiming.Heartbeat / 4)
		for _, p := range s.redialled {
			n[p]++
		}
		s.redialled = nil
		sent := s.take()
		for _, p := range []election.PeerID{"b", "c"} {
			for _, h := range sentTo[election.Heartbeat](sent, p) {
				answers(p, h)
			}
		}
	}
	return n
}

func TestALeaderRedialsOnceALeaseWhoAnswersNothing(t *testing.T) {
	s := newSolo(t, nil).leader()
	all := func(p election.PeerID, h election.Heartbeat) { s.hear(p, ack(h)) }
	onlyB := func(p election.PeerID, h election.Heartbeat) {
		if p == "b" {
			all(p, h)
		}
	}
	if n := s.redials(3*testTiming.Lease, all); len(n) > 0 {
		t.Fatalf("redials %v though all answer", n)
	}
	if n := s.redials(testTiming.Lease, onlyB); len(n) > 0 {
		t.Fatalf("redials %v though none was silent for a lease", n)
	}
	if n := s.redials(3*testTiming.Lease, onlyB); n["b"] != 0 || n["c"] < 2 || n["c"] > 3 {
		t.Fatalf("redials %v in three leases, want c once in each", n)
	}
	s.hear("c", election.Inquiry{Election: election.Default}) // any message shows that the connection works
	if n := s.redials(testTiming.Lease, onlyB); len(n) > 0 {
		t.Fatalf("redials %v, though c was heard within a lease", n)
	}
	s.step(election.PeerLost{Peer: "c"})
	if n := s.redials(3*testTiming.Lease, onlyB); len(n) > 0 {
		t.Fatalf("redials %v, though c has no connection", n)
	}
}

func TestAFollowerRedialsALeaderWhoseLeaseExpired(t *testing.T) {
	for _, test := range []struct {
		name   string
		talks  bool
		redial int
	}{{"silent", false, 1}, {"heard of otherwise", true, 0}} {
		t.Run(test.name, func(t *testing.T) {
			s := newSolo(t, nil)
			for i := range 10 {
				s.pass(testTiming.Heartbeat)
				s.hear("b", election.Heartbeat{Lineage: 1, Send: election.SendID(i + 1), Version: soloRoster.Version, Echo: s.now,
					Claims: []election.Claim{{Election: election.Default, Term: 1, Remaining: testTiming.Lease}}})
			}
			if s.status(election.Default).State != Following {
				t.Fatal("does not follow b")
			}
			n := 0
			for range 8 {
				s.pass(testTiming.Lease / 4)
				if test.talks {
					s.hear("b", election.Inquiry{Election: election.Default})
				}
				for _, p := range s.redialled {
					if p != "b" {
						t.Fatalf("redials %s", p)
					}
					n++
				}
				s.redialled = nil
			}
			if n != test.redial {
				t.Errorf("redials b %d times, want %d", n, test.redial)
			}
		})
	}
}

// TestWhatGossipSuspectedBeforeAConnectionDoesNotCount: an agent that dies and is back is the same
// member. Gossip ends its suspicion only a second later.
func TestWhatGossipSuspectedBeforeAConnectionDoesNotCount(t *testing.T) {
	s := newSolo(t, nil).leader()
	obstacle := func(suspected bool) *election.Refusal {
		s.view.Members[1].Suspected = suspected
		s.step(election.ViewChanged{View: s.view})
		s.replies = nil
		s.step(election.Transfer{Election: election.Default, To: "b", Request: 9})
		return s.replies[0].Refusal
	}
	if obstacle(true) == nil {
		t.Fatal("it transfers to an agent that gossip suspects")
	}
	s.step(election.PeerLost{Peer: "b"})
	s.connect("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	s.view.Members[1].Suspected = false
	s.step(election.ViewChanged{View: s.view})
	if obstacle(true) == nil {
		t.Fatal("gossip cleared it and suspects it again, and it counts as present")
	}
	s.step(election.PeerLost{Peer: "b"})
	s.connect("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	if why := obstacle(true); why != nil {
		t.Errorf("gossip suspects what was before it connected, and the transfer is refused: %+v", why)
	}
}
