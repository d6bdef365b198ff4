package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestNoClaimOfATermNobodyCanExceedIsBelieved: one such heartbeat of an observer ended an election
// on all agents, until all had been restarted.
func TestNoClaimOfATermNobodyCanExceedIsBelieved(t *testing.T) {
	ghost := election.Holder{Peer: "d", Lineage: 1}
	const far = election.Term(1) << 60
	for name, tell := range map[string]func(*solo){
		"a heartbeat of a voter":     func(s *solo) { s.hear("b", claimOf(far)) },
		"a heartbeat of an observer": func(s *solo) { s.hear("d", claimOf(far)) },
		"one within reach":           func(s *solo) { s.hear("d", claimOf(1000)) },
		"a report of a voter":        func(s *solo) { s.hear("b", election.Report{Voter: true, Records: farRecord(ghost, far)}) },
		"a report of an observer":    func(s *solo) { s.hear("d", election.Report{Voter: true, Records: farRecord(ghost, 1000)}) },
		"a release": func(s *solo) {
			s.hear("d", election.Release{Election: election.Default, Term: far, Holder: ghost, StandDown: time.Second})
		},
		"a refusal of an observer":      func(s *solo) { s.hear("d", refusalTo(1000)) },
		"a refusal of a voter, too far": func(s *solo) { s.hear("b", refusalTo(far)) },
	} {
		s := newSolo(t, nil)
		s.view.Members = append(s.view.Members, member("d", 100))
		s.step(election.ViewChanged{View: s.view})
		s.connect("d", election.Report{Roster: soloRoster, Stamp: 5})
		s.campaign(election.Default)
		tell(s)
		s.pass(4 * testTiming.Lease)
		s.clear()
		s.pass(2 * testTiming.Lease)
		asked := sentTo[election.VoteRequest](s.sent, "b")
		if len(asked) == 0 {
			t.Errorf("%s: it asks for votes no more", name)
		}
		for _, r := range asked {
			if r.Term > 500 {
				t.Errorf("%s: it asks for term %d", name, r.Term)
				break
			}
		}
	}
}

// TestALeaderIsNotSupersededByAnObserversWord: no voter has reported the observer's term, and the
// voters still renew.
func TestALeaderIsNotSupersededByAnObserversWord(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.connect("d", election.Report{Roster: soloRoster, Stamp: 5})
	s.hear("d", claimOf(1000))
	if !s.leads(election.Default) {
		t.Error("an observer's claim ended the leadership")
	}
	s.hear("c", claimOf(1000))
	if s.leads(election.Default) {
		t.Error("it leads on beside a voter with a higher term")
	}
}

// TestALateClaimOfATermThatItsLeaderOvertookIsNotFollowed: no voter has reported the leader's
// terms, and its newest heartbeats were lost until its lease expired here.
func TestALateClaimOfATermThatItsLeaderOvertookIsNotFollowed(t *testing.T) {
	s := newSolo(t, nil)
	s.connect("d", election.Report{Roster: soloRoster, Stamp: 5})
	beat := func(term election.Term, echo election.Instant) {
		m := claimOf(term)
		m.Echo = echo
		s.hear("d", m)
	}
	first := s.now
	beat(18, first)
	beat(20, first)
	s.pass(s.status(election.Default).ValidUntil.Sub(s.now) - 10*time.Millisecond)
	late := s.now
	s.pass(10 * time.Millisecond)
	if s.named() != "" {
		t.Fatalf("names %s though its lease has expired", s.named())
	}
	beat(18, late)
	if s.named() != "" {
		t.Errorf("names %s in term %d after term 20", s.named(), s.status(election.Default).Term)
	}
	beat(20, late)
	if s.named() != "d" {
		t.Error("does not name the leader that leads on in its newest term")
	}
}

func claimOf(term election.Term) election.Heartbeat {
	return election.Heartbeat{Lineage: 1, Send: 1, Version: soloRoster.Version, Echo: at(60_000),
		Claims: []election.Claim{{Election: election.Default, Term: term, Remaining: testTiming.Lease}}}
}

func farRecord(h election.Holder, term election.Term) []election.Record {
	return []election.Record{{Election: election.Default, Term: term, Holder: h}}
}

func refusalTo(granted election.Term) election.VoteRefusal {
	return election.VoteRefusal{Election: election.Default, Term: 1, Holder: soloSelf, Granted: granted, Reason: election.RefusedStaleTerm}
}
