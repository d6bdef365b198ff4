package elector

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// deafened are three agents led by a. The link between a and c is cut. If loud is true, both notice that at once. b is
// no candidate.
func deafened(t *testing.T, loud bool) *cluster {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.level = election.Level
	c.nodes["b"].prio = 0
	for _, name := range c.names {
		c.start(name)
	}
	c.run(3 * time.Second)
	if c.leaders() != "a@1" {
		t.Fatalf("led by %s", c.leaders())
	}
	c.part("a", "c", true)
	if loud {
		c.input("a", election.PeerLost{Peer: "c"})
		c.input("c", election.PeerLost{Peer: "a"})
	}
	return c
}

func TestG5ALeaderThatAVoterHearsIsNamed(t *testing.T) {
	for _, loud := range []bool{false, true} {
		c := deafened(t, loud)
		for range 50 {
			c.run(testTiming.Heartbeat)
			if c.known("c") != "a@1" || c.leaders() != "a@1" {
				t.Fatalf("loud: %t: at %v c names %q, led by %s", loud, c.Now, c.known("c"), c.leaders())
			}
		}
		attempts := c.nodes["c"].elector.Counters().Attempts
		c.run(10 * time.Second)
		if c.nodes["c"].elector.Counters().Attempts != attempts {
			t.Errorf("loud: %t: c asks for votes while a voter hears a leader", loud)
		}
	}
}

func TestG5ALeaderThatNoVoterHearsAnyMoreIsSucceeded(t *testing.T) {
	for _, loud := range []bool{false, true} {
		c := deafened(t, loud)
		c.run(3 * time.Second)
		c.kill("a")
		c.run(testTiming.Lease + testTiming.Heartbeat)
		if led := c.leaders(); !strings.HasPrefix(led, "c@") {
			t.Errorf("loud: %t: led by %q", loud, led)
		}
	}
}

// TestG5AQuestionIsAskedOnlyWhereNoLeaderIsHeard: in a cluster whose agents are all connected, listening costs nothing.
func TestG5AQuestionIsAskedOnlyWhereNoLeaderIsHeard(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.level = election.Level
	asked := 0
	c.spy = func(_ string, e election.Envelope) {
		if _, is := e.Message.(election.Listen); is {
			asked++
		}
	}
	for _, name := range c.names {
		c.start(name)
	}
	c.run(3 * time.Second)
	asked = 0
	c.run(5 * time.Second)
	c.input("a", election.Resign{Election: election.Default})
	c.run(5 * time.Second)
	if asked > 0 {
		t.Errorf("%d questions", asked)
	}
	c.part(c.leaders()[:1], "c", true)
	c.run(5 * time.Second)
	if asked == 0 {
		t.Error("no question where a leader is not heard")
	}
}

// listener is an agent that hears no leader, and has asked b and c.
func listener(t *testing.T) *solo {
	s := newSolo(t, nil)
	for _, id := range []election.PeerID{"b", "c"} {
		s.step(election.PeerConnected{Peer: id, Lineage: 1, Level: election.Level})
		s.hear(id, election.Report{Voter: true, Roster: soloRoster})
	}
	s.campaign(election.Default)
	s.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: election.Default, Priority: 200}}})
	s.clear()
	s.pass(2 * testTiming.Heartbeat)
	if len(sentTo[election.Listen](s.sent, "c")) == 0 {
		t.Fatal("it asks nobody")
	}
	return s
}

func TestG5NewsNamesALeaderOnlyUntilItsLeaseEnds(t *testing.T) {
	const remaining = time.Second
	x := election.Holder{Peer: "x", Lineage: 3}
	from := func(s *solo) election.Instant { return last[election.Listen](s, "c").Stamp }
	heard := func(h election.Holder, term election.Term) []election.Heard {
		return []election.Heard{{Election: election.Default, Term: term, Holder: h, Remaining: remaining, Age: 30 * time.Millisecond, Sure: true}}
	}
	for _, row := range []struct {
		name  string
		from  election.PeerID
		given func(*solo)
		news  func(*solo) election.News
		named bool
	}{
		{name: "of a voter", from: "c", news: func(s *solo) election.News { return election.News{Echo: from(s), Leaders: heard(x, 4)} }, named: true},
		{name: "of an observer", from: "d", given: func(s *solo) {
			s.step(election.PeerConnected{Peer: "d", Lineage: 1, Level: election.Level})
			s.hear("d", election.Report{Roster: soloRoster})
		}, news: func(s *solo) election.News { return election.News{Echo: from(s), Leaders: heard(x, 4)} }},
		{name: "about a leader that is this agent", from: "c", news: func(s *solo) election.News {
			return election.News{Echo: from(s), Leaders: heard(soloSelf, 4)}
		}},
		{name: "that answers a question of the future", from: "c", news: func(s *solo) election.News {
			return election.News{Echo: s.now.Add(time.Millisecond), Leaders: heard(x, 4)}
		}},
		{name: "that answers a question from before a suspend", from: "c", given: func(s *solo) {
			s.now = s.now.Add(time.Millisecond)
			s.step(election.Suspended{})
		}, news: func(s *solo) election.News { return election.News{Echo: from(s), Leaders: heard(x, 4)} }},
		{name: "that answers a former life's question", from: "c", news: func(s *solo) election.News {
			return election.News{Echo: s.e.started - 1, Leaders: []election.Heard{{Election: election.Default, Term: 4, Holder: x, Remaining: testTiming.Lease, Sure: true}}}
		}},
		{name: "that comes after the lease has ended", from: "c", given: func(s *solo) { s.now = s.now.Add(remaining) },
			news: func(s *solo) election.News { return election.News{Echo: from(s), Leaders: heard(x, 4)} }},
		{name: "about a term that has ended", from: "c", given: func(s *solo) {
			s.hear("b", beatOf(1, 5, s.now))
			s.hear("b", election.Release{Election: election.Default, Term: 5, Holder: election.Holder{Peer: "b", Lineage: 1}})
		}, news: func(s *solo) election.News { return election.News{Echo: from(s), Leaders: heard(x, 4)} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := listener(t)
			if row.given != nil {
				row.given(s)
			}
			news := row.news(s)
			s.hear(row.from, news)
			got := s.status(election.Default)
			if named := got.Leader == x; named != row.named {
				t.Fatalf("named: %t, want %t: %+v", named, row.named, got)
			}
			if !row.named {
				return
			}
			// 1 s of the voter's clock, by this agent's clock, counted from its question
			if end := news.Echo.Add(980_198_019); got.ValidUntil != end || got.HeardAt != news.Echo.Add(-30*time.Millisecond) || got.Term != 4 {
				t.Errorf("it is named until %v and was heard at %v, want %v: %+v", got.ValidUntil, got.HeardAt, end, got)
			}
		})
	}
}

// TestG5AnUnsureTermIsFollowedAndNotLearned: a voter that has not granted a term may only repeat what an
// observer has made up. So this agent names its leader, but does not count it as the highest term.
func TestG5AnUnsureTermIsFollowedAndNotLearned(t *testing.T) {
	for _, sure := range []bool{false, true} {
		s := listener(t)
		known := s.e.contests.get(election.Default).Highest()
		s.hear("c", election.News{Echo: last[election.Listen](s, "c").Stamp, Leaders: []election.Heard{
			{Election: election.Default, Term: 400, Holder: election.Holder{Peer: "x", Lineage: 3}, Remaining: time.Second, Sure: sure}}})
		if got := s.status(election.Default); got.Leader.Peer != "x" {
			t.Fatalf("sure: %t: names %+v", sure, got)
		}
		if learned := s.e.contests.get(election.Default).Highest() != known; learned != sure {
			t.Errorf("sure: %t; learned: %t", sure, learned)
		}
	}
}

func TestG5AVoterPassesOnOnlyWhatItHears(t *testing.T) {
	s := newSolo(t, nil)
	s.step(election.PeerConnected{Peer: "c", Lineage: 1, Level: election.Level})
	s.hear("c", election.Report{Voter: true, Roster: soloRoster})
	ask := func() []election.Heard {
		s.clear()
		s.hear("c", election.Listen{Stamp: 77, Elections: []election.Name{election.Default, "unknown"}})
		n := last[election.News](s, "c")
		if n.Echo != 77 {
			t.Fatalf("echoes %v", n.Echo)
		}
		return n.Leaders
	}
	if got := ask(); len(got) > 0 {
		t.Errorf("of no leader it says %+v", got)
	}
	beat := beatOf(1, 5, s.now)
	beat.Claims[0].Remaining = time.Second
	s.hear("b", beat)
	s.now = s.now.Add(100 * time.Millisecond)
	got := ask()
	if len(got) != 1 || got[0].Holder.Peer != "b" || got[0].Term != 5 || got[0].Age != 100*time.Millisecond || got[0].Remaining != 880_198_019 || got[0].Sure {
		t.Fatalf("of a leader whose term it has not granted it says %+v", got)
	}
	s.now = s.now.Add(880_198_018)
	beat.Claims[0].Election = "pay"
	s.hear("b", beat) // it is alive, and leads another election
	s.now++
	if got := ask(); len(got) > 0 {
		t.Errorf("of a leader whose lease has just ended it says %+v", got)
	}
	s.hear("b", beatOf(1, 5, s.now))
	s.step(election.PeerLost{Peer: "b"})
	if got := ask(); len(got) > 0 {
		t.Errorf("of a leader that it does not hear any more it says %+v", got)
	}
	s.pass(testTiming.Heartbeat)
	s.hear("c", election.News{Echo: s.now, Leaders: []election.Heard{{Election: election.Default, Term: 6, Holder: election.Holder{Peer: "x", Lineage: 1}, Remaining: time.Second}}})
	if s.status(election.Default).Leader.Peer != "x" {
		t.Fatalf("names %+v", s.status(election.Default))
	}
	if got := ask(); len(got) > 0 {
		t.Errorf("of a leader that only another voter hears it says %+v", got)
	}
}

// TestG5ALeaderThatNoVoterNamesAgainIsSoughtBeforeItsLeaseEnds: the time until its lease ends is for selection.
func TestG5ALeaderThatNoVoterNamesAgainIsSoughtBeforeItsLeaseEnds(t *testing.T) {
	for _, connected := range []bool{false, true} {
		s := listener(t)
		if connected { // but its heartbeats do not arrive
			s.step(election.PeerConnected{Peer: "x", Lineage: 3, Level: election.Level})
			s.hear("x", election.Report{Roster: soloRoster})
		}
		s.pass(30 * time.Millisecond)
		s.hear("c", newsOfX(last[election.Listen](s, "c")))
		s.pass(2*testTiming.Heartbeat - 1)
		if s.named() != "x" || s.e.contests.get(election.Default).Vacant() {
			t.Fatalf("connected: %t: it is sought before another answer was due", connected)
		}
		s.pass(1)
		if s.named() != "x" || !s.e.contests.get(election.Default).Vacant() {
			t.Errorf("connected: %t: it is not sought, or not named any more while its lease runs", connected)
		}
	}
}

func newsOfX(l election.Listen) election.News {
	return election.News{Echo: l.Stamp, Leaders: []election.Heard{
		{Election: election.Default, Term: 4, Holder: election.Holder{Peer: "x", Lineage: 3}, Remaining: time.Second, Sure: true}}}
}

// TestG5ALeaderThatVotersNameIsNotSought: however long no voter heard a leader before, even if voters answer late.
func TestG5ALeaderThatVotersNameIsNotSought(t *testing.T) {
	const soon = 2 * time.Millisecond
	for _, row := range []struct {
		what         string
		vacant, b, c time.Duration // until any voter hears a leader; until each answers
	}{
		{"no leader for long", 60 * testTiming.Heartbeat, soon, soon},
		{"one voter is slow", 0, soon, 210 * time.Millisecond},
		{"all voters are slow", 0, 180 * time.Millisecond, 180 * time.Millisecond},
	} {
		s, named := listener(t), false
		s.pass(row.vacant)
		s.clear()
		answers := map[election.Instant]map[election.PeerID]election.News{}
		for end := s.now.Add(40 * testTiming.Heartbeat); s.now < end; s.pass(time.Millisecond) {
			for voter, wait := range map[election.PeerID]time.Duration{"b": row.b, "c": row.c} {
				for _, l := range sentTo[election.Listen](s.sent, voter) {
					due := l.Stamp.Add(wait)
					if answers[due] == nil {
						answers[due] = map[election.PeerID]election.News{}
					}
					answers[due][voter] = newsOfX(l)
				}
			}
			s.clear()
			for _, voter := range []election.PeerID{"b", "c"} {
				if n, ok := answers[s.now][voter]; ok {
					s.hear(voter, n)
				}
			}
			named = named || s.named() == "x"
			if named && (s.named() != "x" || s.e.contests.get(election.Default).Vacant()) {
				t.Fatalf("%s: %v before the end x is sought, or not named", row.what, end.Sub(s.now))
			}
		}
		if !named {
			t.Errorf("%s: x was never named", row.what)
		}
	}
}

// TestG5AReleaseOfOneElectionLeavesTheOthersHeard: also before the leader's next heartbeat comes.
func TestG5AReleaseOfOneElectionLeavesTheOthersHeard(t *testing.T) {
	s := newSolo(t, nil)
	beat := beatOf(1, 5, s.now)
	beat.Claims[0].Remaining = time.Second
	beat.Claims = append(beat.Claims, election.Claim{Election: "pay", Term: 5, Remaining: time.Second})
	s.hear("b", beat)
	for i, name := range []election.Name{"pay", election.Default} {
		s.hear("b", election.Release{Election: name, Term: 5, Holder: election.Holder{Peer: "b", Lineage: 1}})
		s.hear("c", election.Listen{Stamp: 77, Elections: []election.Name{election.Default, "pay"}})
		if n := len(last[election.News](s, "c").Leaders); n != 1-i {
			t.Errorf("after %d releases it hears %d leaders", i+1, n)
		}
	}
	if s.e.peers.get("b").beats != nil {
		t.Error("it waits for heartbeats of an agent that has stopped leading")
	}
}

// TestG5WhileVotersHearNoLeaderTheyAreAskedMoreRarely: that may last for days, if no agent is a candidate.
func TestG5WhileVotersHearNoLeaderTheyAreAskedMoreRarely(t *testing.T) {
	s := listener(t)
	s.clear()
	s.pass(60 * testTiming.Heartbeat)
	if n := len(sentTo[election.Listen](s.sent, "c")); n < 5 || n > 12 {
		t.Errorf("asked %d times in 60 heartbeats", n)
	}
	s.clear()
	s.hear("c", election.Report{Voter: true, Roster: soloRoster, Records: []election.Record{
		{Election: election.Default, Term: 3, Holder: election.Holder{Peer: "x", Lineage: 1}, Remaining: testTiming.Lease}}})
	s.pass(testTiming.Heartbeat)
	if len(sentTo[election.Listen](s.sent, "c")) != 1 {
		t.Error("it does not ask soon when a voter reports a leader")
	}
}
