package elector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// Another program of the leader's host may act next. Then its meta is shown, by the leader and its peers.
func TestALeadersMetaIsKnownWhereItsCandidaciesAre(t *testing.T) {
	o := newLone(t, trioState())
	o.connect("b", election.Report{Voter: true})
	o.elect("pay")
	o.step(election.Campaign{Election: "pay", Priority: 100, Meta: "a:80"})
	if got := o.status("pay"); got.State != Leading || got.Meta != "a:80" {
		t.Fatalf("the leader itself: %s, meta %q", got.State, got.Meta)
	}
	o.take()
	o.pass(testTiming.Heartbeat)
	sent := sentTo[election.Candidacies](o.take(), "b")
	if want := []election.Candidacy{{Election: "pay", Priority: 100, Meta: "a:80"}}; len(sent) != 1 || !slices.Equal(sent[0].Candidacies, want) {
		t.Fatalf("sent %+v", sent)
	}
	o.step(election.Withdraw{Election: "pay", Remaining: 50, Meta: "a:81"})
	o.pass(testTiming.Heartbeat)
	sent = sentTo[election.Candidacies](o.take(), "b")
	if want := []election.Candidacy{{Election: "pay", Priority: 50, Meta: "a:81"}}; len(sent) != 1 || !slices.Equal(sent[0].Candidacies, want) {
		t.Fatalf("after the withdrawal: sent %+v", sent)
	}
}

func TestAPeersMetaIsKnownWhileItIsConnected(t *testing.T) {
	s := newSolo(t, nil)
	s.connect("b", election.Report{Voter: true, Roster: soloRoster})
	says := func(serial uint64, meta string) ContestStatus {
		s.hear("b", election.Candidacies{Lineage: 1, Serial: serial, Candidacies: []election.Candidacy{{Election: election.Default, Priority: 100, Meta: meta}}})
		return s.status(election.Default)
	}
	s.hear("b", beatOf(1, 3, s.now))
	if got := s.status(election.Default); got.Leader.Peer != "b" || got.Meta != "" {
		t.Fatalf("before its candidacies: leader %v, meta %q", got.Leader, got.Meta)
	}
	if got := says(1, "b:80"); got.Meta != "b:80" {
		t.Fatalf("meta %q", got.Meta)
	}
	if got := says(2, "b:81"); got.Meta != "b:81" {
		t.Fatalf("a newer one: meta %q", got.Meta)
	}
	if got := says(1, "b:80"); got.Meta != "b:81" {
		t.Errorf("an older meta %q undid a newer one", got.Meta)
	}
	s.step(election.PeerLost{Peer: "b"})
	if got := s.status(election.Default); got.Leader.Peer != "b" || got.Meta != "" {
		t.Errorf("not connected: leader %v, meta %q", got.Leader, got.Meta)
	}
	s.step(election.PeerConnected{Peer: "b", Lineage: 2}) // b's host was rebooted: its former leadership is gone
	s.hear("b", election.Candidacies{Lineage: 2, Serial: 1, Candidacies: []election.Candidacy{{Election: election.Default, Priority: 100, Meta: "new"}}})
	if got := s.status(election.Default); got.Leader.Lineage != 1 || got.Meta != "" {
		t.Errorf("rebooted: leader %v, meta %q", got.Leader, got.Meta)
	}
}

// TestCandidaciesAreSentEvenIfTheirMetasDoNotFit: then only the first ones by name have metas.
func TestCandidaciesAreSentEvenIfTheirMetasDoNotFit(t *testing.T) {
	const fit = maxMetas / election.MaxMeta
	var cs candidacies
	for i := range election.MaxElections {
		cs.set(true, election.Candidacy{Election: election.Name(fmt.Sprintf("%063d", i)), Priority: 100, Meta: strings.Repeat("m", election.MaxMeta)})
	}
	sent := cs.sent()
	data, err := codec.EncodeMessage(election.Candidacies{Lineage: 1 << 63, Serial: 1 << 63, Candidacies: sent})
	if err != nil || len(sent) != election.MaxElections {
		t.Fatalf("%d candidacies: %v", len(sent), err)
	}
	if len(data) > codec.MaxMessage*3/4 {
		t.Errorf("%d bytes are near the limit of %d", len(data), codec.MaxMessage)
	}
	for i, c := range sent {
		if (c.Meta != "") != (i < fit) {
			t.Fatalf("candidacy %d of %d has a meta of %d bytes", i, len(sent), len(c.Meta))
		}
	}
	if cs.list[fit].Meta == "" {
		t.Error("this agent itself forgot the meta")
	}
}
