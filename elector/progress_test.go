package elector

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// reportOf is b's Report about its state.
func (s *solo) reportOf(boot election.LineageID, writes, known uint64) election.Report {
	return election.Report{Voter: true, Roster: soloRoster, Stamp: s.now, Lineage: boot, Writes: writes, Known: known}
}

// restart makes b come back with that lineage.
func (s *solo) restart(boot election.LineageID) {
	s.step(election.PeerLost{Peer: "b"})
	s.step(election.PeerConnected{Peer: "b", Lineage: boot})
}

func (s *solo) warns(code string) bool {
	return slices.ContainsFunc(s.e.Status(s.now).Warnings, func(w Warning) bool { return w.Code == code })
}

// A voter with an older state may have made promises that it does not know. Until its newest state
// is back, its votes do not count, and it gets no votes.
func TestAVoterThatCameBackOlderDoesNotCount(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", o.reportOf(1, 40, 0))
	o.restart(2)
	if r := sentTo[election.Report](o.take(), "b"); len(r) != 1 || r[0].Known != 40 {
		t.Fatalf("b is told %+v", r)
	}
	o.hear("b", o.reportOf(2, 39, 0))
	if !o.warns("voter_data_dir_older") || o.e.reachable("b") {
		t.Error("b counts, and nothing is said")
	}
	o.hear("b", election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 2}, Lease: testTiming.Lease,
		Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster})
	if g := sentTo[election.VoteGrant](o.take(), "b"); len(g) != 0 {
		t.Errorf("b gets votes: %+v", g)
	}
	o.now = o.now.Add(testTiming.Heartbeat)
	o.hear("b", o.reportOf(2, 60, 0)) // further writes do not bring the promises back
	if !o.warns("voter_data_dir_older") {
		t.Error("more writes make up for lost ones")
	}
	o.restart(3)
	o.hear("b", o.reportOf(3, 41, 0))
	if o.warns("voter_data_dir_older") || !o.e.reachable("b") {
		t.Error("b is back with its newest state, and does not count")
	}
}

// No voter in these cases has lost anything.
func TestWhoDidNotGoBackCounts(t *testing.T) {
	for name, play := range map[string]func(o *solo){
		"the same number":            func(o *solo) { o.restart(2); o.hear("b", o.reportOf(2, 40, 0)) },
		"a word of its former run":   func(o *solo) { o.restart(2); o.hear("b", o.reportOf(1, 12, 0)) },
		"an earlier word comes late": func(o *solo) { r := o.reportOf(1, 39, 0); r.Stamp--; o.hear("b", r) },
		"it says nothing of it":      func(o *solo) { o.restart(2); o.hear("b", election.Report{Voter: true, Roster: soloRoster}) },
	} {
		o := newLone(t, trioState())
		o.hear("b", o.reportOf(1, 40, 0))
		play(o)
		if o.warns("voter_data_dir_older") || o.e.older("b") {
			t.Errorf("%s: b is taken for older", name)
		}
	}
}

func TestAnAgentThatIsToldThatItIsOlderIsBarred(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", o.reportOf(1, 4, o.e.ledger.Writes()))
	if o.warns("data_dir_older") {
		t.Fatal("barred by what it has")
	}
	r := o.reportOf(1, 4, o.e.ledger.Writes()+1)
	r.Lineage = 9
	o.hear("b", r)
	if o.warns("data_dir_older") {
		t.Fatal("barred by the word of another run")
	}
	r.Lineage = 1
	o.hear("b", r)
	if !o.warns("data_dir_older") {
		t.Fatal("it goes on voting")
	}
}

// A failed write may be on disk or not. It is not reported, so the voter is not suspected if the
// write is lost.
func TestOnlyDurableWritesAreTold(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", o.reportOf(1, 1, 0))
	before := o.e.ledger.Writes()
	o.hang()
	o.hear("b", election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Lease: testTiming.Lease,
		Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster})
	o.hear("b", election.Inquiry{ID: 7})
	if r := sentTo[election.Report](o.take(), "b"); len(r) != 1 || r[0].Writes != before {
		t.Fatalf("told %+v, %d are durable", r, before)
	}
	o.step(election.PersistFailed{Write: o.begun})
	o.stuck = false
	o.rest(2 * testTiming.Lease)
	r := sentTo[election.Report](o.take(), "b")
	if len(r) == 0 || r[len(r)-1].Writes != before+2 {
		t.Fatalf("told %+v; the second of two tries is durable, after %d", r, before)
	}
}

// The Report of a peer that connects may be lost if a queue is full.
func TestALeaderWhoseReportWasLostIsAskedForIt(t *testing.T) {
	o := newLone(t, trioState())
	o.restart(2)
	o.take()
	o.e.peers.get("b").probeAt = election.Never // probes ask another question
	asked := 0
	for send := election.SendID(1); send < 10; send++ {
		o.hear("b", election.Heartbeat{Lineage: 2, Send: send, Version: soloRoster.Version})
		asked += len(sentTo[election.Inquiry](o.take(), "b"))
		o.now = o.now.Add(testTiming.Heartbeat)
	}
	if asked != 1 && asked != 2 {
		t.Errorf("asked %d times in nine heartbeats", asked)
	}
}

// Heartbeats overtake queued messages. A leader that is back needs the answer to its heartbeat:
// without it, its first renewal comes a heartbeat later.
func TestAHeartbeatThatOvertookTheReportIsAnsweredAfterIt(t *testing.T) {
	o := newLone(t, trioState())
	o.restart(2)
	o.take()
	for send := election.SendID(4); send <= 5; send++ {
		o.hear("b", election.Heartbeat{Lineage: 2, Send: send, Version: soloRoster.Version})
	}
	if early := sentTo[election.HeartbeatAck](o.take(), "b"); len(early) != 0 {
		t.Fatalf("answered before the Report: %+v", early)
	}
	o.hear("b", o.reportOf(2, 1, 0))
	o.hear("b", o.reportOf(2, 1, 0))
	if acks := sentTo[election.HeartbeatAck](o.take(), "b"); len(acks) != 1 || acks[0].Send != 5 {
		t.Errorf("got the answers %+v, want one to the newest heartbeat", acks)
	}
}

// newest reports whether each agent knows how many writes each other agent has made.
func (c *cluster) newest() bool {
	for _, a := range c.names {
		for _, b := range c.names {
			if c.nodes[a].elector.progress.get(election.PeerID(b)).Writes != c.nodes[b].elector.ledger.Writes() {
				return false
			}
		}
	}
	return true
}

// Heartbeats and their answers carry the numbers of writes, and the leader passes them on.
func TestAResignationCostsSevenMessages(t *testing.T) {
	for level, want := range []int{13, 13, 7} { // agents of older versions send it in Reports
		c := newCluster(t, election.Bully, "a", "b", "c")
		c.level = uint64(level)
		for _, n := range c.names {
			c.start(n)
		}
		c.run(10 * testTiming.Lease)
		if !c.newest() {
			t.Fatalf("level %d: not all know of all writes at the start", level)
		}
		sent := 0
		c.spy = func(_ string, e election.Envelope) {
			switch e.Message.(type) {
			case election.Heartbeat, election.HeartbeatAck:
			default:
				sent++
			}
		}
		c.input("a", election.Resign{Election: election.Default, Request: 1})
		c.run(2*testTiming.Heartbeat + 20*hop)
		if early := c.newest(); early != (level == 2) {
			t.Errorf("level %d: all know of all writes after two heartbeats: %t", level, early)
		}
		c.run(3 * testTiming.Lease)
		if sent != want || !c.newest() {
			t.Errorf("level %d: a resignation took %d messages, want %d; all know of all writes: %t", level, sent, want, c.newest())
		}
	}
}

// A leader of an older version does not pass Progress on, and a follower of an older version does not read it.
func TestWithAnOlderVersionProgressIsReported(t *testing.T) {
	for _, levels := range [][2]uint64{{election.LevelSettings, election.LevelSettings}, {1, election.LevelSettings}, {election.LevelSettings, 1}} {
		o := newLone(t, trioState())
		for i, id := range []election.PeerID{"b", "c"} {
			o.step(election.PeerConnected{Peer: id, Lineage: 1, Level: levels[i]})
			o.hear(id, election.Report{Voter: true, Roster: soloRoster, Stamp: o.now})
		}
		o.rest(2 * testTiming.Lease)
		o.take()
		o.hear("b", election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Lease: testTiming.Lease,
			Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster})
		for send := election.SendID(2); send < 12; send++ {
			o.hear("b", election.Heartbeat{Lineage: 1, Send: send, Version: soloRoster.Version, Echo: o.now,
				Claims: []election.Claim{{Election: "pay", Term: 3, Remaining: testTiming.Lease}}})
			o.rest(testTiming.Heartbeat)
		}
		want := 1
		if levels == [2]uint64{election.LevelSettings, election.LevelSettings} {
			want = 0
		}
		if r := sentTo[election.Report](o.take(), "c"); len(r) != want {
			t.Errorf("with a leader of level %d, an agent of level %d is told %+v", levels[0], levels[1], r)
		}
	}
}

// Without a leader, no agent passes Progress on.
func TestWithoutALeaderProgressIsReportedAfterALease(t *testing.T) {
	o := newLone(t, trioState())
	o.step(election.PeerConnected{Peer: "c", Lineage: 1, Level: election.LevelSettings})
	o.hear("c", election.Report{Voter: true, Roster: soloRoster, Stamp: o.now})
	o.rest(2 * testTiming.Lease)
	o.take()
	o.hear("b", election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Lease: testTiming.Lease,
		Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster})
	if r := sentTo[election.Report](o.take(), "c"); len(r) != 0 {
		t.Errorf("told at once: %+v", r)
	}
	o.rest(2 * testTiming.Lease)
	if r := sentTo[election.Report](o.take(), "c"); len(r) != 1 || r[0].Writes != o.e.ledger.Writes() {
		t.Errorf("told %+v", r)
	}
}
