package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// beatOf is a heartbeat of b, the leader of default in that term.
func beatOf(boot election.LineageID, term election.Term, echo election.Instant) election.Heartbeat {
	return election.Heartbeat{Lineage: boot, Send: 1, Version: soloRoster.Version, Echo: echo,
		Claims: []election.Claim{{Election: election.Default, Term: term, Remaining: ownLease, Rank: election.Rank{Priority: 100, Peer: "b"}}}}
}

// named is the leader that a names now, or "".
func (s *solo) named() election.PeerID {
	h, _ := s.status(election.Default).LeaderAt(s.now)
	return h.Peer
}

func TestG5AFollowerCountsTheLeaseFromTheStampItsLeaderEchoes(t *testing.T) {
	s := newSolo(t, nil)
	stamp := s.now
	s.now = s.now.Add(300 * time.Millisecond) // the heartbeat took long to arrive
	s.hear("b", beatOf(1, 3, stamp))
	want := stamp.Add(quorum.HolderLease(ownLease, election.DefaultDrift))
	if got := s.status(election.Default); s.named() != "b" || got.ValidUntil != want {
		t.Fatalf("names %q until %d, want b until %d", s.named(), got.ValidUntil, want)
	}
}

func TestG5AFollowerNamesNobodyPastTheEndOfItsLease(t *testing.T) {
	s := newSolo(t, nil)
	s.hear("b", beatOf(1, 3, s.now))
	until := s.status(election.Default).ValidUntil
	s.clear()
	s.pass(until.Sub(s.now) - 1)
	if s.named() != "b" {
		t.Fatalf("names %q before the lease ends", s.named())
	}
	s.pass(1)
	if len(s.announced) != 1 || s.announced[0].Event != election.NoLeader || s.status(election.Default).Leader.Peer != "" {
		t.Fatalf("announced %+v at the end of the lease, names %v", s.announced, s.status(election.Default).Leader)
	}
}

func TestG5WhatProvesNothingNamesNobody(t *testing.T) {
	for name, hear := range map[string]func(*solo){
		"a Coordinator alone": func(s *solo) {
			s.hear("b", election.BullyCoordinator{Election: election.Default, Term: 3, Leader: election.Holder{Peer: "b", Lineage: 1}})
		},
		"a stamp that is yet to come":   func(s *solo) { s.hear("b", beatOf(1, 3, s.now.Add(time.Minute))) },
		"a stamp that is long past":     func(s *solo) { s.hear("b", beatOf(1, 3, s.now.Add(-2*testTiming.Lease))) },
		"a heartbeat of a former life":  func(s *solo) { s.hear("b", beatOf(9, 3, s.now)) },
		"a heartbeat of who is no peer": func(s *solo) { s.hear("z", beatOf(1, 3, s.now)) },
		"a Vote Request":                func(s *solo) { s.hear("b", soloRequest("b", 3)) },
		"the Release of a term": func(s *solo) {
			s.hear("b", election.Release{Election: election.Default, Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}})
		},
		"a report of a promise that may run": func(s *solo) {
			s.hear("c", election.Report{Voter: true, Roster: soloRoster, Records: []election.Record{
				{Election: election.Default, Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Remaining: testTiming.Lease}}})
		},
	} {
		s := newSolo(t, nil)
		s.now = s.now.Add(time.Millisecond)
		hear(s)
		if s.named() != "" {
			t.Errorf("%s makes it name %s", name, s.named())
		}
		for _, a := range s.announced {
			t.Errorf("%s makes it announce %+v", name, a)
		}
	}
}

func TestG5AStatusNamesNobodyOnceTheLeaseEnded(t *testing.T) {
	c := ContestStatus{Leader: election.Holder{Peer: "b", Lineage: 1}, ValidUntil: at(100)}
	for now, want := range map[election.Instant]bool{at(99): true, at(100): false, at(101): false} {
		if _, ok := c.LeaderAt(now); ok != want {
			t.Errorf("at %d: named %v, want %v", now, ok, want)
		}
	}
}

// soloRequest is a Vote Request of b's or c's first life.
func soloRequest(from election.PeerID, term election.Term) election.VoteRequest {
	return election.VoteRequest{Election: election.Default, Term: term, Holder: election.Holder{Peer: from, Lineage: 1},
		Lease: testTiming.Lease, Send: 1, Rank: election.Rank{Priority: 100, Peer: from}, Roster: *soloRoster}
}

func TestG6AnInquiryIsAnsweredByAMajorityThatAgrees(t *testing.T) {
	said := func(p election.PeerID) election.Report {
		return election.Report{Voter: true, Roster: soloRoster, Records: []election.Record{
			{Election: election.Default, Term: 3, Holder: election.Holder{Peer: p, Lineage: 1}, Remaining: time.Second}}}
	}
	s := newSolo(t, nil) // a itself has granted nothing
	s.step(election.Inquire{Election: election.Default, Request: 4})
	id := last[election.Inquiry](s, "b").ID
	answer := func(from election.PeerID, r election.Report) {
		r.ID, r.Election = id, election.Default
		s.hear(from, r)
	}
	if len(s.replies) != 0 {
		t.Fatalf("one voter alone answers: %+v", s.replies)
	}
	answer("b", said("b"))
	if len(s.replies) != 0 {
		t.Fatalf("two voters that disagree answer while the third may decide: %+v", s.replies)
	}
	answer("c", said("b"))
	if len(s.replies) != 1 || s.replies[0].Leader.Holder.Peer != "b" || s.replies[0].Leader.Term != 3 {
		t.Fatalf("replies %+v, want b in term 3", s.replies)
	}
}

// seeks returns what a has sent in order to be elected.
func (s *solo) seeks() []election.Message {
	var ms []election.Message
	for _, d := range s.sent {
		switch m := d.Message.(type) {
		case election.VoteRequest, election.BullyElection:
			ms = append(ms, m)
		}
	}
	return ms
}

func TestWhoMayNotLeadSeeksNothing(t *testing.T) {
	for name, prepare := range map[string]func(*solo){
		"does not stand": func(*solo) {},
		"priority 0":     func(s *solo) { s.step(election.Campaign{Election: election.Default}) },
		"draining": func(s *solo) {
			s.step(election.Drain{On: true, Request: 1})
			s.step(election.Campaign{Election: election.Default, Priority: 100})
		},
		"shutting down": func(s *solo) {
			s.step(election.Shutdown{})
			s.step(election.Campaign{Election: election.Default, Priority: 100})
		},
		"cut off": func(s *solo) {
			s.step(election.PeerLost{Peer: "b"})
			s.step(election.PeerLost{Peer: "c"})
			s.step(election.Campaign{Election: election.Default, Priority: 100})
		},
	} {
		s := newSolo(t, nil)
		prepare(s)
		s.pass(5 * testTiming.Lease)
		if ms := s.seeks(); len(ms) > 0 {
			t.Errorf("%s: sent %+v", name, ms[0])
		}
	}
}

func TestWhoResignedLeavesTheFieldToOthersForALease(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.step(election.Resign{Election: election.Default, Request: 1})
	s.step(election.Stopped{Election: election.Default, Term: s.withdrawn[0].Term})
	s.clear()
	s.pass(testTiming.Lease - 1)
	if ms := s.seeks(); len(ms) > 0 {
		t.Fatalf("seeks again within a lease: %+v", ms[0])
	}
	for _, p := range []election.PeerID{"b", "c"} {
		s.hear(p, election.Report{Voter: true, Roster: soloRoster}) // it is still there
	}
	s.pass(testTiming.Heartbeat)
	if ms := s.seeks(); len(ms) == 0 {
		t.Fatal("does not stand again though nobody leads")
	}
}

func TestALeaderHandsOverOnlyToWhoCanLead(t *testing.T) {
	s := newSolo(t, nil)
	s.view.Members[1] = member("b", 0)
	s.view.Members[2].Draining = true
	s.step(election.ViewChanged{View: s.view})
	s.leader()
	s.step(election.Resign{Election: election.Default, Request: 1})
	for i, to := range []election.PeerID{"b", "c", "a", "z"} {
		s.step(election.Transfer{Election: election.Default, To: to, Request: election.RequestID(i + 2)})
	}
	for _, r := range s.replies {
		if why := []election.Denial{election.DeniedNobodyElse, election.DeniedTargetUnable, election.DeniedTargetUnable, election.DeniedLeadsAlready,
			election.DeniedTargetUnknown}[r.Request-1]; r.Refusal == nil || r.Refusal.Why != why {
			t.Errorf("request %d: %+v, want %q", r.Request, r.Refusal, why)
		}
	}
	if len(s.replies) != 5 || len(s.withdrawn) > 0 {
		t.Errorf("%d replies, withdrew %+v", len(s.replies), s.withdrawn)
	}
}
