package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

// revising is three agents of this version's feature level, led by a.
func revising(t *testing.T, algo string) *cluster {
	c := newCluster(t, algo, "a", "b", "c")
	c.level = election.Level
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	if got := c.leaders(); got != "a@1" {
		t.Fatalf("leads: %s, want a@1", got)
	}
	return c
}

// revise asks b for a change, and returns the denial.
func (c *cluster) revise(in election.ChangeRoster) election.Denial {
	in.Request = election.RequestID(1000 + len(c.nodes["b"].replies))
	c.input("b", in)
	c.run(3 * testTiming.Lease)
	return c.replyTo("b", in.Request)
}

func TestR14ANewLeaseDisturbsNoTerm(t *testing.T) {
	for _, l := range []time.Duration{testTiming.Lease * 2 / 3, 3 * testTiming.Lease} {
		c := revising(t, election.Bully)
		if why := c.revise(election.ChangeRoster{Settings: election.Settings{Lease: l}}); why != "done" {
			t.Fatalf("refused: %s", why)
		}
		if got := c.leaders(); got != "a@1" {
			t.Errorf("lease %v: leads: %s, want a@1 as before", l, got)
		}
		for _, n := range c.names {
			if r := c.roster(n); r.Lease() != l || r.Floor != 0 {
				t.Errorf("%s holds lease %v, floor %d; want %v, 0", n, r.Lease(), r.Floor, l)
			}
		}
		c.run(testTiming.Lease)
		s := c.nodes["a"].elector.Status(c.Now).Contests[0]
		if left := s.ValidUntil.Sub(c.Now); left > l || left < l/2 {
			t.Errorf("lease %v: a may act for %v more", l, left)
		}
		c.kill("a")
		from := c.Now
		for c.leaders() == "" && c.Now < from.Add(5*testTiming.Lease) {
			c.run(10 * time.Millisecond)
		}
		if took := c.Now.Sub(from); took > l+l/2 || took < l/2 {
			t.Errorf("lease %v: the next leader came after %v", l, took)
		}
	}
}

func TestR14ANewLeaseHidesNotWhenTheLeaderWasHeard(t *testing.T) {
	for _, l := range []time.Duration{testTiming.Lease * 2 / 3, 3 * testTiming.Lease} {
		c := revising(t, election.Bully)
		c.input("b", election.ChangeRoster{Settings: election.Settings{Lease: l}, Request: 1})
		for range 400 {
			c.run(10 * time.Millisecond)
			for _, n := range c.names {
				s := c.nodes[n].elector.Status(c.Now).Contests[0]
				if age := c.Now.Sub(s.HeardAt); age < 0 || age > testTiming.Heartbeat+20*hop {
					t.Fatalf("lease %v: %s says that the leader was heard %v ago, want at most a heartbeat and a round trip", l, n, age)
				}
			}
		}
		if r := c.roster("a"); r.Lease() != l {
			t.Errorf("the lease is %v, want %v", r.Lease(), l)
		}
	}
}

// TestR14AChangeOfTheLeaseIsNotDoneEarlierInAHigherTerm: b waits until promises for the former
// lease have ended. Meanwhile it takes a higher term of the roster election, because c was cut off
// and has voted for itself.
func TestR14AChangeOfTheLeaseIsNotDoneEarlierInAHigherTerm(t *testing.T) {
	c := revising(t, election.Bully)
	var ends election.Instant // when the promises of a majority end
	c.spy = func(from string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterAccept); ok && from == "a" {
			ends = c.Now.Add(m.Promise)
		}
	}
	c.part("b", "c", true)
	c.input("b", election.ChangeRoster{Settings: election.Settings{Lease: 3 * testTiming.Lease}, Request: 1})
	c.input("c", election.ChangeRoster{Settings: election.Settings{Algorithm: "ring"}, Request: 2})
	c.run(testTiming.Heartbeat)
	e := c.nodes["b"].elector
	ballot, _ := e.Drives()
	c.part("b", "c", false)
	for c.replyTo("b", 1) == "" && c.Now < ends.Add(testTiming.Lease) {
		c.run(hop)
	}
	if got := e.contests.get(election.RosterElection).Highest(); got <= ballot {
		t.Errorf("b drove in term %d alone", ballot)
	}
	if why := c.replyTo("b", 1); why != "done" || c.Now < ends {
		t.Errorf("answers %q %v before all that was promised for the former lease has ended", why, ends.Sub(c.Now))
	}
	c.run(2 * testTiming.Lease)
	if a, b := c.replyTo("c", 2), e.Status(c.Now).Change; a != election.DeniedOvertaken || b != nil {
		t.Errorf("then c answers %q, b drives %v", a, b)
	}
}

func TestR14AnAgentWithAnotherLeaseFollowsTheRoster(t *testing.T) {
	c := revising(t, election.Bully)
	e := c.nodes["a"].elector
	e.given.Heartbeat = 300 * time.Millisecond
	c.revise(election.ChangeRoster{Settings: election.Settings{Lease: 800 * time.Millisecond}})
	if e.cfg.Lease != 800*time.Millisecond || !election.Fits(e.cfg.Heartbeat, e.cfg.Lease) {
		t.Errorf("a goes on with %+v", e.cfg.Timing)
	}
	if got := c.leaders(); got != "a@1" {
		t.Errorf("leads: %s", got)
	}
}

func TestR14ALeaseThatAHeartbeatDoesNotFitIsRefusedByName(t *testing.T) {
	c := revising(t, election.Bully)
	c.beat = testTiming.Heartbeat
	c.kill("c")
	c.start("c")
	c.run(testTiming.Lease)
	c.input("b", election.ChangeRoster{Settings: election.Settings{Lease: 500 * time.Millisecond}, Request: 1})
	c.run(time.Millisecond)
	if got := c.nodes["b"].replies; len(got) != 1 || got[0].Refusal == nil || got[0].Refusal.Why != election.DeniedHeartbeat || got[0].Refusal.Agent != "b" {
		t.Errorf("replies %+v, want a refusal that names b", got)
	}
	c.nodes["b"].elector.given.Heartbeat = time.Millisecond
	c.input("b", election.ChangeRoster{Settings: election.Settings{Lease: 500 * time.Millisecond}, Request: 2})
	c.run(time.Millisecond)
	if got := c.nodes["b"].replies; len(got) != 2 || got[1].Refusal == nil || got[1].Refusal.Why != election.DeniedHeartbeat || got[1].Refusal.Agent != "c" {
		t.Errorf("replies %+v, want a refusal that names c", got)
	}
}

func TestR14TheAlgorithmChangesWhileALeaderLeads(t *testing.T) {
	for from, to := range map[string]string{"bully": "ring", "ring": "bully"} {
		c := revising(t, from)
		if why := c.revise(election.ChangeRoster{Settings: election.Settings{Algorithm: to}}); why != "done" {
			t.Fatalf("refused: %s", why)
		}
		if got := c.leaders(); got != "a@1" {
			t.Fatalf("leads: %s, want a@1 as before", got)
		}
		c.kill("a")
		c.run(3 * testTiming.Lease)
		if got := c.leaders(); got == "" || c.nodes["b"].elector.counters.Dropped["other_algorithm"] != 0 {
			t.Errorf("leads: %q", got)
		}
	}
}

func TestR14WhoDoesNotKnowTheRosterIsLeftOut(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["d"].observe = true
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	set := election.ChangeRoster{Settings: election.Settings{Algorithm: "ring"}}
	if why := c.revise(set); why != election.DeniedOlderVersion {
		t.Fatalf("refused with %q, want %q: all are of level 0", why, election.DeniedOlderVersion)
	}
	c.level = election.Level
	for _, n := range []string{"a", "b", "c"} {
		c.kill(n)
		c.start(n)
	}
	c.kill("d")
	c.run(2 * testTiming.Lease)
	if why := c.revise(set); why != "done" {
		t.Fatalf("refused with %q, though all that are there know it", why)
	}
	c.level = 0
	c.start("d")
	c.run(2 * testTiming.Lease)
	if why := c.revise(election.ChangeRoster{Add: []election.Voter{{Name: "d", Peer: "d"}}}); why != election.DeniedOlderVersion {
		t.Errorf("d was added: %q", why)
	}
	if r := c.nodes["d"].Disk.Roster; r != nil && r.Level() == 0 && r.Version == c.roster("a").Version {
		t.Error("d holds another content under the same version")
	}
	if p := c.nodes["b"].elector.peers.get("d"); p == nil || c.nodes["b"].elector.reachable("d") {
		t.Error("d counts as reachable")
	}
}

func TestR15RightsMoveTheLeadAndBindSelection(t *testing.T) {
	c := revising(t, election.Bully)
	allow := func(max int, agents ...election.PeerID) election.Denial {
		return c.revise(election.ChangeRoster{Right: election.Right{Election: election.Default, Agents: agents, MaxPriority: max}})
	}
	start := c.Now
	if why := allow(100, "c"); why != "done" {
		t.Fatalf("refused: %s", why)
	}
	if got := c.leaders(); got != "c@2" {
		t.Fatalf("leads: %s, want c@2", got)
	}
	if c.Now.Sub(start) > 4*testTiming.Lease || c.nodes["a"].elector.counters.LeasesExpired != 0 {
		t.Error("a did not hand over, but lost its lease")
	}
	c.kill("c")
	c.run(5 * testTiming.Lease)
	if got := c.leaders(); got != "" {
		t.Errorf("leads: %s, want nobody", got)
	}
	if n := c.nodes["a"].elector.counters.Attempts; n > 1 {
		t.Errorf("a made %d bids, which nobody may grant", n)
	}
	if why := allow(0); why != "done" {
		t.Fatalf("refused: %s", why)
	}
	c.run(2 * testTiming.Lease)
	if got := c.leaders(); got == "" {
		t.Error("nobody leads without rights")
	}
	if why := allow(99); why != election.DeniedNotConnected {
		t.Errorf("refused with %q while c is away, whose level is not known", why)
	}
	c.start("c")
	c.run(testTiming.Lease)
	if why := allow(99); why != "done" || c.leaders() != "" {
		t.Errorf("refused: %q; leads: %s, though all have priority 100", why, c.leaders())
	}
	if why := c.revise(election.ChangeRoster{Right: election.Right{Election: "other"}}); why != election.DeniedNoSuchRight {
		t.Errorf("refused with %q, want %q", why, election.DeniedNoSuchRight)
	}
}

// The next life goes on with the shortest lease of the former lives (K4e), even if the roster now
// has a longer one: voters may have the shorter one on record.
func TestR14TheShortestLeaseOfARosterIsOnRecord(t *testing.T) {
	c := revising(t, election.Bully)
	short := testTiming.Lease * 2 / 3
	s := newSolo(t, func(_ *election.Config, st *election.State) {
		r := *soloRoster
		r.Settings.Lease, st.Roster = short, &r
	})
	if got := s.past.Shortest; got != short {
		t.Errorf("begins with a roster whose lease is %v, and has %v on record", short, got)
	}
	for _, l := range []time.Duration{short, 2 * testTiming.Lease} {
		if why := c.revise(election.ChangeRoster{Settings: election.Settings{Lease: l}}); why != "done" {
			t.Fatalf("refused: %s", why)
		}
		for _, n := range c.names {
			if got := c.nodes[n].Past.Shortest; got != short {
				t.Errorf("the roster's lease is %v; %s has %v on record, want %v", l, n, got, short)
			}
		}
	}
}

// An agent that may not lead would ask for no votes, or get none: selection does not wait for it.
func TestR15WhoMayNotLeadIsNotSelected(t *testing.T) {
	for name, right := range map[string]election.Right{
		"agents":   {Election: election.Default, Agents: []election.PeerID{"a"}},
		"priority": {Election: election.Default, MaxPriority: 100},
	} {
		s := newSolo(t, func(_ *election.Config, st *election.State) {
			r := *soloRoster
			r.Rights = []election.Right{right}
			st.Roster = &r
		})
		s.view.Members[1], s.view.Members[2] = member("b", 200), member("c", 200)
		s.step(election.ViewChanged{View: s.view})
		for _, p := range []election.PeerID{"b", "c"} {
			s.step(election.PeerLost{Peer: p})
			s.step(election.PeerConnected{Peer: p, Lineage: 1, Level: election.Level})
			s.hear(p, election.Report{Voter: true, Roster: s.disk.Roster, Stamp: 5})
		}
		s.clear()
		s.campaign(election.Default)
		if len(sentTo[election.VoteRequest](s.sent, "b")) == 0 {
			t.Errorf("%s: a alone may lead, and sent only %+v", name, s.sent)
		}
	}
}

func TestWithoutQuorumARosterOnDiskCountsForNothing(t *testing.T) {
	r := *soloRoster
	r.Settings = election.Settings{Algorithm: "ring", Lease: 3 * testTiming.Lease}
	r.Rights = []election.Right{{Election: election.Default, Agents: []election.PeerID{"c"}}}
	s := newSolo(t, func(c *election.Config, st *election.State) { c.Quorum = false; st.Roster = &r })
	for i := range s.view.Members {
		s.view.Members[i].Candidacies = nil
	}
	s.step(election.ViewChanged{View: s.view})
	s.campaign(election.Default)
	s.pass(5 * testTiming.Lease)
	if s.e.cfg.Algorithm != election.Bully {
		t.Errorf("without quorum, follows the roster on disk: %s, lease %v", s.e.cfg.Algorithm, s.e.cfg.Lease)
	}
	if s.status(election.Default).Leader.Peer != "a" {
		t.Errorf("the only candidate does not lead, by a right that without quorum nobody can change")
	}
}

// An older version would store the proposal without its settings, under the same version. It would
// promise less than the holder counts, so two agents could lead.
func TestR14NoRevisionIsProposedToAnOlderVersion(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.level = election.Level
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	slow := false
	c.Write = func(a *virtual.Agent) time.Duration {
		if slow && a.Peer == "b" {
			return 3 * testTiming.Lease
		}
		return sync
	}
	var bad []string
	proposed := false
	c.spy = func(from string, e election.Envelope) {
		if m, ok := e.Message.(election.RosterPropose); ok {
			proposed = true
			if n := c.nodes[string(e.To)]; n.level < m.Roster.Level() && n.Up {
				bad = append(bad, from+">"+string(e.To))
			}
		}
	}
	slow = true
	c.input("b", election.ChangeRoster{Settings: election.Settings{Lease: 3 * testTiming.Lease}, Request: 77})
	for range 200 {
		if c.run(time.Millisecond / 4); proposed {
			break
		}
	}
	if !proposed {
		t.Fatal("nothing was proposed")
	}
	c.kill("c")
	c.level = 0
	c.start("c")
	c.run(2 * testTiming.Lease)
	if len(bad) > 0 {
		t.Errorf("proposed to an older version: %v", bad)
	}
}
