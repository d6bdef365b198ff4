package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestRoundsThatWaitForOthersGiveTheirTurnsUp: a has as many rounds as it may. All of them wait for
// b, which answers but never asks for votes, because it waits for a too. The election in which a
// ranks highest must get its turn, or no election is ever led again.
func TestRoundsThatWaitForOthersGiveTheirTurnsUp(t *testing.T) {
	for _, algorithm := range []string{election.Bully, election.Ring} {
		s := newSolo(t, func(cfg *election.Config, _ *election.State) { cfg.Algorithm = algorithm })
		s.e.agenda.window = minWindow
		s.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{
			{Election: "leads", Priority: 50}, {Election: "waits-1", Priority: 200}, {Election: "waits-2", Priority: 200}}})
		s.campaign("waits-1")
		s.campaign("waits-2")
		s.answerAsTheBetter("b", time.Second)
		if s.e.agenda.contesting != minWindow {
			t.Fatalf("%s: %d rounds are under way, want %d", algorithm, s.e.agenda.contesting, minWindow)
		}
		s.campaign("leads")
		s.take()
		s.answerAsTheBetter("b", 5*testTiming.Lease)
		asked := false
		for _, m := range s.take() {
			switch m := m.Message.(type) {
			case election.VoteRequest:
				asked = asked || m.Election == "leads"
			case election.RingElection: // its token goes round
				asked = asked || m.Election == "leads"
			}
		}
		if !asked {
			t.Errorf("%s: the election in which it is the best got no turn in five leases", algorithm)
		}
	}
}

// answerAsTheBetter plays a better peer that answers every message of selection, but never asks for
// votes.
func (s *solo) answerAsTheBetter(p election.PeerID, d time.Duration) {
	answered := 0
	for end := s.now.Add(d); s.now < end; {
		for ; answered < len(s.sent); answered++ {
			switch m := s.sent[answered].Message.(type) {
			case election.BullyElection:
				s.hear(p, election.BullyAnswer{Election: m.Election, Round: m.Round})
			case election.RingElection:
				s.hear(p, election.RingAck{Election: m.Election, Round: m.Round, Best: m.Best.Peer})
			}
		}
		s.pass(testTiming.Heartbeat / 10)
	}
}
