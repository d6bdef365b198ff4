package elector

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// dismissing is a change that removes agent a from the roster. The request goes to a itself.
type dismissing struct {
	name, voters string
	change       election.ChangeRoster
	left         string
}

var dismissals = []dismissing{
	{"one of two is removed", "a,b", election.ChangeRoster{Remove: []election.PeerID{"a"}, Request: 1}, "b"},
	{"a follower is removed", "b,a", election.ChangeRoster{Remove: []election.PeerID{"a"}, Request: 1}, "b"},
	{"the only one is replaced", "a", election.ChangeRoster{Add: nodesOf("d"), Remove: []election.PeerID{"a"}, Request: 1}, "d"},
}

// untilOutcome makes the change, and cuts agent a off from the remaining voters as soon as it proposes
// them as the only voters. Then six leases pass, in which it loses the roster election.
func (d dismissing) untilOutcome(t *testing.T) *cluster {
	c := votersAnd(t, d.voters)
	c.spy = func(from string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); ok && from == "a" && !m.Roster.Joint() {
			c.part("a", d.left, true)
		}
	}
	c.input("a", d.change)
	c.run(6 * testTiming.Lease)
	c.spy = nil
	if a, left := c.roster("a"), c.roster(d.left); a.Joint() || !left.Committed {
		t.Fatalf("a holds %s, %s holds %s; want the outcome at a, the marked roster at %s", voterNames(a), d.left, voterNames(left), d.left)
	}
	return c
}

func TestAChangeWhoseOutcomeOnlyTheAskingAgentHoldsIsNotDone(t *testing.T) {
	for _, d := range dismissals {
		t.Run(d.name, func(t *testing.T) {
			c := d.untilOutcome(t)
			if got := c.replyTo("a", 1); got != "" {
				t.Fatalf("answers %q while %s does not hold the outcome", got, d.left)
			}
			c.input("a", election.ChangeRoster{Cancel: true, Request: 2})
			c.run(testTiming.Heartbeat)
			if got := c.replyTo("a", 2); got != election.DeniedChangeSent {
				t.Fatalf("cancel: %q, want busy: it is too late", got)
			}
			c.part("a", d.left, false)
			c.run(testTiming.Lease)
			if got := c.replyTo("a", 1); got != "done" {
				t.Fatalf("answers %q once %s can be told, want done", got, d.left)
			}
			c.wantVoters(d.left, d.left)
			c.kill("a") // its operator wiped it, because it was reported not to be a voter any more
			c.run(4 * testTiming.Lease)
			if q := c.nodes[d.left].elector.Status(c.Now).Quorum; !q.Exists {
				t.Fatalf("%s has no quorum without a: %+v", d.left, q)
			}
		})
	}
}

func TestAChangeThatWaitsForItsOutcomeAtItsDeadlineGoesOnAndSaysSo(t *testing.T) {
	for _, d := range dismissals {
		t.Run(d.name, func(t *testing.T) {
			c := d.untilOutcome(t)
			c.run(4*testTiming.Lease + 10*time.Second) // until the deadline: untilOutcome took six leases
			replies := c.nodes["a"].replies
			if len(replies) != 1 || replies[0].Refusal == nil || replies[0].Refusal.Why != election.DeniedNotConfirmed ||
				!slices.Equal(replies[0].Refusal.Change.Missing, []string{d.left}) || !replies[0].Refusal.Change.Outcome {
				t.Fatalf("%+v, want that it goes on, waits for %s, and needs this agent", replies, d.left)
			}
			status := c.nodes["a"].elector.Status(c.Now)
			if status.Change == nil || !status.Change.Outcome || !slices.ContainsFunc(status.Warnings, func(w Warning) bool {
				return w.Code == "voters_change"
			}) {
				t.Fatalf("change %+v, warnings %+v; want both to show it", status.Change, status.Warnings)
			}
			c.part("a", d.left, false)
			c.run(testTiming.Lease)
			c.wantVoters(d.left, d.left)
			if ch := c.nodes["a"].elector.Status(c.Now).Change; ch != nil {
				t.Fatalf("a still drives: %+v", ch)
			}
		})
	}
}

// TestAWayBackThatOnlyTheAskingAgentHoldsIsNotDone: a continues a marked change, and is asked to
// cancel it.
func TestAWayBackThatOnlyTheAskingAgentHoldsIsNotDone(t *testing.T) {
	joint := &election.Roster{Cluster: "x", Version: election.Version{Driver: 5, Counter: 1}, Voters: voters("a", "b", "c"),
		Next: voters("a", "b", "d"), Committed: true, Floor: 4}
	s := newLone(t, election.State{Roster: joint, Grants: map[election.Name]election.Grant{
		election.RosterElection: {Term: 5, Holder: election.Holder{Peer: "c", Lineage: 3}, Lease: testTiming.Lease, Released: true}}})
	s.step(election.ChangeRoster{Cancel: true, Request: 9})
	s.drive("b", "d")
	p := s.proposal(s.take(), "b")
	s.accept("b", p, 6)
	s.accept("d", p, 6)
	for range 40 {
		if s.e.roster.Joint() {
			s.keep(testTiming.Heartbeat/4, "b", "d")
		}
	}
	if s.e.roster.Joint() {
		t.Fatalf("holds %s, want the former voters", voterNames(*s.e.roster))
	}
	s.pass(3 * testTiming.Lease)
	if len(s.replies) != 0 {
		t.Fatalf("%+v, while nobody else is known to hold the former voters", s.replies)
	}
	s.accept("b", s.proposal(s.take(), "b"), 6)
	if len(s.replies) != 1 || s.replies[0].Refusal != nil {
		t.Fatalf("%+v once a majority has accepted, want done", s.replies)
	}
}

func TestAnOutcomeThatCannotBeCommittedIsNotDoneUntilAMajorityHoldsIt(t *testing.T) {
	s, p := changing(t, 0)
	p = s.mark(p, "d", "b")
	for _, id := range []election.PeerID{"b", "c", "d"} {
		s.accept(id, p, 1)
	}
	for range 40 {
		if s.e.roster.Joint() {
			s.keep(testTiming.Heartbeat/4, "b", "c", "d")
		}
	}
	s.pass(testTiming.Heartbeat)
	p = s.proposal(s.take(), "b")
	if p.Roster.Joint() {
		t.Fatalf("holds %s, proposes %+v; want the outcome", voterNames(*s.e.roster), p)
	}
	refuse := election.RosterRefuse{Driver: p.Driver, Version: p.Roster.Version, Granted: p.Driver + 1}
	s.hear("c", refuse) // not a voter any more
	s.hear("b", refuse)
	s.pass(3 * testTiming.Lease)
	if s.e.Status(s.now).Change == nil {
		t.Fatal("given up, though a and d may accept")
	}
	s.hear("d", refuse)
	s.pass(3 * testTiming.Lease)
	if ch := s.e.Status(s.now).Change; ch != nil || len(s.replies) != 0 {
		t.Fatalf("drives on: %+v, replies %+v; want neither", ch, s.replies)
	}
	s.tells("c", s.e.roster)
	if len(s.replies) != 0 {
		t.Fatalf("%+v at the word of c, who is not a voter any more", s.replies)
	}
	s.hear("b", election.Report{Voter: true, Roster: s.e.roster, Election: election.RosterElection, Records: []election.Record{{Election: election.RosterElection, Term: p.Driver + 1}}})
	if len(s.replies) != 0 {
		t.Fatalf("%+v, though b has promised a later driver to accept no such ballot, and that one may undo the change", s.replies)
	}
	s.hear("b", election.Report{Voter: true, Roster: s.e.roster, Election: "payments"})
	if len(s.replies) != 0 {
		t.Fatalf("%+v by a report that says nothing of votes for drivers", s.replies)
	}
	s.hear("b", election.Report{Voter: true, Roster: s.e.roster, Election: election.RosterElection})
	if len(s.replies) != 1 || s.replies[0].Refusal != nil {
		t.Fatalf("%+v once b holds the outcome too, want done", s.replies)
	}
}

func TestAVoterIsNotAskedForWhileOneIsBeingAdded(t *testing.T) {
	joint := &election.Roster{Cluster: "x", Version: election.Version{Driver: 5, Counter: 1}, Voters: voters("a", "b"),
		Next: voters("a", "b", "d"), Committed: true, Floor: 4}
	s := newLone(t, election.State{Roster: joint})
	if q := s.e.Status(s.now).Quorum; !q.Edge || q.Reachable != q.Voters {
		t.Fatalf("%+v, want all reachable, and that one loss ends it", q)
	}
	if s.warns("quorum_edge") {
		t.Fatalf("warnings %+v, want none of quorum_edge", s.e.Status(s.now).Warnings)
	}
	s.step(election.PeerLost{Peer: "d"})
	if !s.warns("quorum_edge") {
		t.Fatal("no quorum_edge, though d is missing")
	}
	for _, w := range s.e.Status(s.now).Warnings {
		if w.Code == "quorum_edge" && w.Voters != "d" {
			t.Errorf("%q are missing, want d", w.Voters)
		}
	}
}

func TestARemovalOfVotersWarnsOfNothingThatItSurvives(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c", "d", "e")
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	for i, gone := range []election.PeerID{"e", "d", "c"} {
		c.input("a", election.ChangeRoster{Remove: []election.PeerID{gone}, Request: election.RequestID(i + 1)})
		for end := c.Now.Add(3 * testTiming.Lease); c.Now < end; c.run(hop) {
			for _, n := range c.names {
				e := c.nodes[n].elector
				s := e.Status(c.Now)
				warned := slices.ContainsFunc(s.Warnings, func(w Warning) bool { return strings.HasPrefix(w.Code, "quorum_") })
				if pair := !e.roster.Joint() && len(e.roster.Voters) == 2; warned != pair {
					t.Fatalf("%s holds %s, and has the warnings %+v; %+v", n, voterNames(*e.roster), s.Warnings, s.Quorum)
				}
			}
		}
		if got := c.replyTo("a", election.RequestID(i+1)); got != "done" {
			t.Fatalf("the removal of %s answers %q", gone, got)
		}
	}
}

func TestADrainedAgentChangesTheVotersAndLeadsNothingElse(t *testing.T) {
	c := votersAnd(t, "a,b,c")
	c.input("b", election.Drain{On: true, Request: 1})
	c.run(testTiming.Lease)
	c.input("b", election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 2})
	c.run(testTiming.Lease / 2)
	c.input("b", election.Drain{On: true, Request: 3}) // again, while it drives
	c.leadsOnAs(4, "a")
	if got := c.replyTo("b", 2); got != "done" {
		t.Fatalf("remove, asked of a drained agent: %q, want done", got)
	}
	c.wantVoters("a", "a,b")
}

// leadsOnAs is leadsOn for any agent and any term.
func (c *cluster) leadsOnAs(leases int, name string) {
	c.t.Helper()
	for range 24 * leases {
		c.run(testTiming.Lease / 24)
		if got := c.leaders(); !strings.HasPrefix(got, name+"@") {
			c.t.Fatalf("leads: %q, want %s all the time", got, name)
		}
	}
}

func TestAChangeThatIsNotBegunInTimeSaysThatAndWhy(t *testing.T) {
	for _, try := range []struct {
		name string
		stop func(*solo)
		why  election.Obstacle
	}{
		{"nobody votes for it", func(*solo) {}, 0},
		{"its disk hangs", func(s *solo) { s.hang(); s.step(election.Drain{On: true}) }, election.CantWrite},
		{"the others are gone", func(s *solo) { s.step(election.PeerLost{Peer: "b"}); s.step(election.PeerLost{Peer: "c"}) }, election.CutOff},
	} {
		t.Run(try.name, func(t *testing.T) {
			s := newLone(t, trioState())
			s.step(election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 1})
			try.stop(s)
			s.keepAlive(10*testTiming.Lease + 10*time.Second)
			if len(s.replies) == 0 {
				t.Fatal("no answer")
			}
			r := s.replies[len(s.replies)-1].Refusal
			if r == nil || r.Why != election.DeniedNotStarted || r.Obstacle != try.why {
				t.Fatalf("%+v, want that it was not started: %d", r, try.why)
			}
			if s.e.contests.get(election.RosterElection).Stands() {
				t.Fatal("it still wants to make the change")
			}
		})
	}
}

// keepAlive lets time pass while b and c answer all questions, but give no votes.
func (s *solo) keepAlive(d time.Duration) {
	for end := s.now.Add(d); s.now < end; {
		s.pass(min(testTiming.Heartbeat, end.Sub(s.now)))
		for _, id := range []election.PeerID{"b", "c"} {
			if s.e.peers.has(id) {
				s.hear(id, election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
			}
		}
	}
}

// TestAVoteThatIsBeingWrittenHidesNoRoster: a Report omits a vote for a driver until the vote is on disk.
// Readers must not conclude that nobody voted so.
func TestAVoteThatIsBeingWrittenHidesNoRoster(t *testing.T) {
	s := newLone(t, trioState())
	told := func() election.Report {
		s.take()
		s.hear("c", election.Inquiry{ID: 1, Election: election.RosterElection})
		got := sentTo[election.Report](s.take(), "c")
		if len(got) != 1 {
			t.Fatalf("%d reports", len(got))
		}
		return got[0]
	}
	if r := told(); r.Roster == nil {
		t.Fatalf("%+v, want the roster", r)
	}
	s.stuck = true
	s.hear("b", election.VoteRequest{Election: election.RosterElection, Term: 5, Holder: election.Holder{Peer: "b", Lineage: 1},
		Lease: testTiming.Lease, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *s.e.roster, Send: 1})
	if r := told(); r.Roster != nil || len(r.Records) != 0 {
		t.Fatalf("%+v, while a vote is being written", r)
	}
	s.stuck = false
	s.step(election.Persisted{Write: s.begun})
	if r := told(); r.Roster == nil || len(r.Records) != 1 || r.Records[0].Term != 5 {
		t.Fatalf("%+v, want the roster and the vote", r)
	}
}
