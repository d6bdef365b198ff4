package elector

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// BenchmarkAThousandElections measures one of five agents that lead 200 elections each: a received
// heartbeat, and an answer to the agent's own heartbeat, with the picture for readers.
func BenchmarkAThousandElections(b *testing.B) {
	o := newScaled(b, 5, 200, 200)
	b.Run("heard", func(b *testing.B) {
		for b.Loop() {
			o.now += election.Instant(10 * time.Millisecond)
			o.beat("b")
			o.e.Status(o.now)
		}
	})
	b.Run("answered", func(b *testing.B) {
		for b.Loop() {
			o.now += election.Instant(10 * time.Millisecond)
			o.step(election.Received{From: "b", Message: ack(o.last)})
			o.e.Status(o.now)
		}
	})
	b.Run("tick", func(b *testing.B) {
		for b.Loop() {
			o.now += election.Instant(time.Millisecond)
			o.step(election.Tick{})
			o.e.Status(o.now)
		}
	})
}

// BenchmarkAMessageAmongManyAgents measures what one step costs an agent that is connected to many: no step walks
// them all (T12).
func BenchmarkAMessageAmongManyAgents(b *testing.B) {
	for _, agents := range []int{3, 30, 300, 1000} {
		b.Run(strconv.Itoa(agents), func(b *testing.B) {
			o := amongMany(b, agents)
			for i := 0; b.Loop(); i++ {
				o.now += election.Instant(10 * time.Microsecond)
				if i%10_000 == 0 { // each 100 ms
					o.led()
				}
				o.hear("a1", election.Inquiry{Election: "default"})
				o.e.Status(o.now)
				o.sent = o.sent[:0]
			}
		})
	}
}

// amongMany is an agent that follows a leader among that many agents, of which three vote. All are candidates.
func amongMany(t testing.TB, agents int) *scaled {
	roster := rosterOf("a", "a1", "a2")
	cfg := election.Config{Self: soloSelf, Name: "a", JoinedAt: 'a', Quorum: true, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift}
	s := &scaled{solo: &solo{t: nil, now: at(60_000)}}
	e, err := New(cfg, election.State{Peer: "a", Roster: roster}, nil, s.now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	s.e = e
	v := election.View{Members: []election.Member{member("a", 100)}}
	for i := 1; i < agents; i++ {
		v.Members = append(v.Members, election.Member{Peer: election.PeerID("a" + strconv.Itoa(i)), Name: "a" + strconv.Itoa(i), Lineage: 1})
	}
	slices.SortFunc(v.Members, func(a, b election.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	s.step(election.ViewChanged{View: v})
	s.campaign("default")
	for _, m := range v.Members[1:] {
		s.step(election.PeerConnected{Peer: m.Peer, Lineage: 1, Level: election.Level})
		s.hear(m.Peer, election.Report{Roster: roster, Stamp: 5})
		s.hear(m.Peer, election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "default", Priority: 50}}})
		s.hear(m.Peer, election.CandidaciesAck{Lineage: soloSelf.Lineage, Serial: e.stands.serial, By: 1})
	}
	s.led()
	if c := s.e.Contests()[0]; c.State != Following || len(c.Candidates) != agents {
		t.Fatalf("it is %s with %d candidates", c.State, len(c.Candidates))
	}
	s.sent = s.sent[:0]
	return s
}

// led hears a heartbeat of the leader.
func (s *scaled) led() {
	s.hear("a1", election.Heartbeat{Lineage: 1, Send: 1, Version: s.e.roster.Version, Echo: s.now - 1,
		Claims: []election.Claim{{Election: "default", Term: 1, Remaining: testTiming.Lease}}})
}

// BenchmarkTheRecordOfAThousandElections measures what the record (K1) adds to a heartbeat that
// renews all leaderships of an agent. The file's part is in agent/record.
func BenchmarkTheRecordOfAThousandElections(b *testing.B) {
	o := newScaled(b, 3, 1000, 0)
	rows := 0
	b.Run("renewed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, c := range o.e.contests.rows {
				c.altered, c.recorded.Until = true, 0
			}
			rows = len(o.e.record().Rows)
		}
	})
	b.Run("nothing new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o.e.record()
		}
	})
	if rows != 1000 {
		b.Fatalf("recorded %d rows", rows)
	}
}

// scaled is an agent a among others. Each leads the same number of elections.
type scaled struct {
	*solo
	each int
	send election.SendID
	last election.Heartbeat // a's own
}

func newScaled(t testing.TB, agents, own, each int) *scaled {
	names := []string{"a", "b", "c", "d", "e"}[:agents]
	roster := rosterOf(names...)
	s := &scaled{solo: &solo{t: nil, now: at(60_000)}, each: each}
	cfg := election.Config{Self: soloSelf, Name: "a", JoinedAt: 'a', Quorum: true, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift}
	e, err := New(cfg, election.State{Peer: "a", Roster: roster}, nil, s.now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	s.e = e
	var v election.View
	for _, n := range names {
		m := member(n, 100)
		m.Candidacies = nil
		v.Members = append(v.Members, m)
	}
	s.step(election.ViewChanged{View: v})
	for _, n := range names[1:] {
		s.step(election.PeerConnected{Peer: election.PeerID(n), Lineage: 1})
		s.hear(election.PeerID(n), election.Report{Voter: true, Roster: roster, Stamp: 5})
	}
	for i := range own {
		s.step(election.Campaign{Election: job("a", i), Priority: 100})
	}
	for len(s.sent) > 0 {
		sent := s.sent
		s.sent = nil
		for _, m := range sent {
			if r, ok := m.Message.(election.VoteRequest); ok {
				s.hear(m.To, grant(r))
			}
		}
	}
	for _, n := range names[1:] {
		s.beat(n)
	}
	led, followed := 0, 0
	for _, c := range s.e.Contests() {
		switch c.State {
		case Leading:
			led++
		case Following:
			followed++
		}
	}
	if led != own || followed != each*(agents-1) {
		t.Fatalf("leads %d and follows %d", led, followed)
	}
	return s
}

func job(agent string, i int) election.Name {
	return election.Name(fmt.Sprintf("job-%s-%03d", agent, i))
}

// beat is a heartbeat in which another agent claims all elections that it leads.
func (s *scaled) beat(from string) {
	s.send++
	h := election.Heartbeat{Lineage: 1, Send: s.send, Version: election.Version{Counter: 1}, Echo: s.now - 1}
	for i := range s.each {
		h.Claims = append(h.Claims, election.Claim{Election: job(from, i), Term: 1, Remaining: testTiming.Lease})
	}
	s.hear(election.PeerID(from), h)
	for _, m := range s.sent {
		if h, ok := m.Message.(election.Heartbeat); ok {
			s.last = h
		}
	}
	s.sent = s.sent[:0]
}
