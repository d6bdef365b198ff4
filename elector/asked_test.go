package elector

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// questions are the voters that were asked since the last call.
func (s *solo) questions() (asked string) {
	for _, d := range s.take() {
		if _, is := d.Message.(election.Listen); is {
			asked += string(d.To)
		}
	}
	return asked
}

// TestG5FewVotersAreAskedAtOnce: an agent costs one voter a question in each heartbeat interval while that voter names
// the leader. When it does not, others are asked at once, so the leader stays named if one of them hears it.
func TestG5FewVotersAreAskedAtOnce(t *testing.T) {
	six := rosterOf("a", "b", "c", "d", "e", "f")
	s := newSolo(t, func(_ *election.Config, st *election.State) { st.Roster = six })
	for _, v := range six.Voters[1:] {
		s.step(election.PeerConnected{Peer: v.Peer, Lineage: 1, Level: election.Level})
		s.hear(v.Peer, election.Report{Voter: true, Roster: six})
	}
	s.campaign(election.Default)
	s.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: election.Default, Priority: 200}}})
	s.clear()
	s.pass(testTiming.Heartbeat)
	first := s.questions()
	s.pass(testTiming.Heartbeat)
	second := s.questions()
	for _, v := range "bcdef" {
		if len(first) != askedAtOnce || len(second) != askedAtOnce || !strings.ContainsRune(first+second, v) {
			t.Fatalf("asks %s, then %s", first, second)
		}
	}
	x := election.Holder{Peer: "x", Lineage: 3}
	names := func(from election.PeerID, holders ...election.Holder) {
		news := election.News{Echo: s.now}
		for _, h := range holders {
			news.Leaders = append(news.Leaders, election.Heard{Election: election.Default, Term: 4, Holder: h, Remaining: testTiming.Lease, Sure: true})
		}
		s.hear(from, news)
	}
	names("d", x)
	names("e", x)
	for range 5 {
		s.pass(testTiming.Heartbeat)
		if asked := s.questions(); asked != "d" {
			t.Fatalf("asks %q while d names the leader", asked)
		}
		names("d", x)
	}
	s.pass(testTiming.Heartbeat)
	s.questions()
	names("d") // d hears it no more
	if asked := s.questions(); len(asked) != askedAtOnce {
		t.Fatalf("asks %q when d has lost the leader", asked)
	}
	names("e", x)
	names("b") // asked beside e, it does not count for more than e
	if asked := s.questions(); asked != "" {
		t.Fatalf("asks %q again at once", asked)
	}
	s.pass(testTiming.Heartbeat) // e does not answer the next question
	s.questions()
	s.pass(testTiming.Heartbeat - 1)
	if s.named() != "x" || s.e.contests.get(election.Default).Vacant() {
		t.Error("the leader is lost before another voter was asked")
	}
	s.pass(1)
	if asked := s.questions(); len(asked) != askedAtOnce {
		t.Errorf("asks %q when e is mute", asked)
	}
}
