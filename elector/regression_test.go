package elector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/quorum"
)

func TestWithoutQuorumAVoteGrantIsDropped(t *testing.T) {
	e, err := New(election.Config{Self: soloSelf, Name: "a", Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift},
		election.State{Peer: "a"}, nil, 1, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	now := election.Instant(time.Hour)
	e.Step(now, election.Campaign{Election: "default", Priority: 100})
	e.Step(now, election.PeerConnected{Peer: "b", Lineage: 1})
	e.Step(now, election.Received{From: "b", Message: election.Report{}})
	if s := e.Status(now).Contests; len(s) != 1 || s[0].State != Leading {
		t.Fatalf("%+v, want a leading", s)
	}
	e.Step(now, election.Received{From: "b", Message: election.VoteGrant{Election: "default", Term: 1, Holder: soloSelf, Send: 1}})
	r := *rosterOf("a", "b")
	r.Version.Driver = 1
	e.Step(now, election.Received{From: "b", Message: election.RosterPropose{Driver: 1, Holder: election.Holder{Peer: "b"}, Roster: r}})
	if e.ledger.State().Roster != nil {
		t.Fatal("an agent without quorum took a roster")
	}
}

// following returns an agent a that names b as the leader of default in term 5, and b's heartbeat.
func following(t *testing.T) (*solo, election.Heartbeat) {
	o := newLone(t, trioState())
	beat := election.Heartbeat{Lineage: 1, Send: 1, Version: o.disk.Roster.Version, Echo: o.now,
		Claims: []election.Claim{{Election: "default", Term: 5, Remaining: time.Second, Rank: election.Rank{Priority: 100, Peer: "b"}}}}
	o.hear("b", beat)
	if c := o.status("default"); c.Leader.Peer != "b" {
		t.Fatalf("names %v, want b", c.Leader)
	}
	return o, beat
}

func TestG5AReleasedLeaderIsNotNamedAgainByALateHeartbeat(t *testing.T) {
	o, beat := following(t)
	o.hear("b", election.Release{Election: "default", Term: 5, Holder: election.Holder{Peer: "b", Lineage: 1}, StandDown: time.Second})
	o.hear("b", beat)
	if c := o.status("default"); c.Leader.Peer != "" {
		t.Fatalf("names %v in term %d, which it gave back", c.Leader, c.Term)
	}
}

func TestG5AnOlderTermIsNotNamedAfterANewerOne(t *testing.T) {
	o, beat := following(t)
	newer := beat
	newer.Claims = []election.Claim{{Election: "default", Term: 6, Remaining: time.Second, Rank: election.Rank{Priority: 100, Peer: "c"}}}
	o.hear("c", newer)
	o.hear("c", election.Release{Election: "default", Term: 6, Holder: election.Holder{Peer: "c", Lineage: 1}, StandDown: time.Second})
	o.hear("b", beat)
	if c := o.status("default"); c.Leader.Peer != "" {
		t.Fatalf("names %v in term %d after it named term 6", c.Leader, c.Term)
	}
}

func TestAnInquiryIsNotAnsweredByReportsToAFormerBoot(t *testing.T) {
	o := newLone(t, trioState())
	o.step(election.Inquire{Election: "default", Request: 1})
	for _, id := range []election.PeerID{"b", "c"} {
		o.hear(id, election.Report{ID: 1, Election: "default", Voter: true, Roster: o.disk.Roster, Records: []election.Record{
			{Election: "default", Term: 5, Holder: election.Holder{Peer: "b", Lineage: 3}, Remaining: time.Second}}})
	}
	if len(o.replies) != 0 {
		t.Fatalf("answered %+v from what was told to another boot", o.replies)
	}
}

func TestAChangeThatRemovesItsDriverIsAnsweredEvenWhenCutOff(t *testing.T) {
	o := newLone(t, trioState())
	o.connect("d", election.Report{})
	o.take()
	o.step(election.ChangeRoster{Add: voters("d"), Remove: []election.PeerID{"a"}, Request: 1})
	o.drive("b")
	p := o.mark(o.proposal(o.take(), "d"), "d", "b", "c")
	for _, id := range []election.PeerID{"b", "c", "d"} {
		o.accept(id, p, 1)
	}
	o.keep(quorum.Outlast(testTiming.Lease, election.DefaultDrift)+time.Millisecond, "b", "c", "d")
	if o.e.roster.Has("a") {
		t.Fatal("a holds no stable roster without it")
	}
	for _, id := range []election.PeerID{"b", "c", "d"} {
		o.step(election.PeerLost{Peer: id})
	}
	o.replies = nil
	o.pass(10*testTiming.Lease + 11*time.Second)
	if len(o.replies) != 1 {
		t.Fatalf("%d replies to the request, want 1", len(o.replies))
	}
}

func TestAPeerBehindIsToldTheRosterByTheLeader(t *testing.T) {
	s := trioState()
	s.Roster.Version = election.Version{Driver: 3, Counter: 1}
	o := newLone(t, s)
	o.connect("z", election.Report{}) // z has no roster yet, because it missed the reports
	o.elect("default")
	o.pass(testTiming.Heartbeat)
	beats := sentTo[election.Heartbeat](o.take(), "z")
	o.hear("z", election.HeartbeatAck{Lineage: soloSelf.Lineage, Send: beats[len(beats)-1].Send, Stamp: 1})
	for _, m := range sentTo[election.Report](o.take(), "z") {
		if m.Roster != nil {
			return
		}
	}
	t.Fatal("a peer that is behind was not told the roster")
}

func TestTheFirstAttemptIsAboveTheFloor(t *testing.T) {
	s := trioState()
	s.Roster.Floor = 50
	o := newLone(t, s)
	o.campaign("default")
	if r := o.request(o.take(), "b", "default"); r.Term != 51 {
		t.Fatalf("asks for term %d, want 51: the floor is 50", r.Term)
	}
}

func TestAPeerOfAnotherClusterIsNoticedWhenTheOwnRosterComesLater(t *testing.T) {
	r := rosterOf("a", "b")
	g := election.Genesis{Proposer: "b", Attempt: 1, Roster: *r}
	e, err := New(election.Config{Self: soloSelf, Name: "a", Quorum: true, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift, Voters: []string{"b", "a"}},
		election.State{Peer: "a", Pending: &g}, nil, 1, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	o := &solo{t: t, e: e, now: election.Instant(time.Hour)}
	foreign := rosterOf("z")
	foreign.Cluster = "y"
	o.connect("z", election.Report{Voter: true, Roster: foreign})
	o.connect("b", election.Report{})
	o.hear("b", election.Report{Voter: true, Roster: r})
	if o.e.roster == nil {
		t.Fatal("not formed")
	}
	if o.e.peers.has("z") {
		t.Fatal("z of cluster y counts as a peer of cluster x")
	}
}

func TestAgentAloneKeepsAPendingGenesis(t *testing.T) {
	g := election.Genesis{Proposer: "b", Attempt: 1, Roster: *rosterOf("a", "b")}
	e, err := New(election.Config{Self: soloSelf, Name: "a", Quorum: true, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift, Alone: true},
		election.State{Peer: "a", Pending: &g}, nil, 1, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	o := &solo{t: t, e: e, now: election.Instant(time.Hour)}
	o.step(election.Tick{})
	if o.e.roster != nil || o.e.ledger.State().Pending == nil {
		t.Fatal("a genesis that was accepted for good is forgotten without --reset-genesis")
	}
}

func TestARequestOfAFormerBootGetsNoVote(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.VoteRequest{Election: "default", Term: 1, Holder: election.Holder{Peer: "b", Lineage: 99},
		Lease: testTiming.Lease, Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *o.disk.Roster})
	if out := sentTo[election.VoteGrant](o.take(), "b"); len(out) != 0 {
		t.Fatal("a vote for a run of b that is over: nobody else gets it for a lease")
	}
}

func TestAgentsConnectionToItselfIsIgnored(t *testing.T) {
	o := newLone(t, trioState())
	o.step(election.PeerConnected{Peer: "a", Lineage: soloSelf.Lineage})
	o.elect("default")
	o.pass(time.Second)
	for _, s := range o.take() {
		if s.To == "a" {
			t.Fatalf("sends itself %T", s.Message)
		}
	}
	if len(o.e.peers.rows) != 2 {
		t.Fatalf("%d peers, want 2", len(o.e.peers.rows))
	}
}

// TestElectionsOfEarlierBootsStillFitOneReport: elections of each boot add up on disk. A Report
// that can't be encoded is never sent, so this voter would never inform other agents again.
func TestElectionsOfEarlierBootsStillFitOneReport(t *testing.T) {
	s := trioState()
	s.Grants = map[election.Name]election.Grant{}
	for i := range 1100 {
		s.Grants[election.Name(fmt.Sprintf("job-%d", i))] = election.Grant{Term: 1, Holder: soloSelf, Lease: time.Second, Released: true}
	}
	o := newLone(t, s)
	if _, err := codec.EncodeMessage(o.e.report(0, "")); err != nil {
		t.Fatal(err)
	}
}

func TestAFloodOfNamesLeavesRoomForTheRosterElection(t *testing.T) {
	o := newLone(t, election.State{Roster: nil})
	o.connect("b", election.Report{})
	for i := range 2 {
		beat := election.Heartbeat{Lineage: 1, Send: 1}
		for j := range 1024 {
			beat.Claims = append(beat.Claims, election.Claim{Election: election.Name(fmt.Sprintf("junk-%d-%d", i, j)), Term: 1})
		}
		o.hear("b", beat)
	}
	if o.e.contest(election.RosterElection) == nil {
		t.Fatal("no room for the roster election: the roster can't be changed until a restart")
	}
	if len(o.e.contests.rows) > election.MaxElections {
		t.Fatalf("%d contests, want at most %d", len(o.e.contests.rows), election.MaxElections)
	}
}

func TestADriverProposesInTheStepThatElectsItOrTheNext(t *testing.T) {
	o := newLone(t, trioState())
	o.connect("d", election.Report{})
	o.take()
	o.step(election.ChangeRoster{Add: voters("d"), Request: 1})
	o.hear("b", grant(o.request(o.take(), "b", election.RosterElection)))
	if len(sentTo[election.RosterPropose](o.take(), "d")) == 0 && o.wake > o.now.Add(time.Millisecond) {
		t.Fatalf("the new driver sleeps for %s before it proposes", o.wake.Sub(o.now))
	}
}

// TestR6AnOvertakingGoesOnUnderAYetNewerRoster: votes for the higher term count at the version at
// which they are given, even if that version came after the request.
func TestR6AnOvertakingGoesOnUnderAYetNewerRoster(t *testing.T) {
	o := newLone(t, trioState())
	o.elect("default")
	newer := func(counter uint64) *election.Roster {
		r := *o.disk.Roster
		r.Version, r.Floor = election.Version{Driver: 2, Counter: counter}, 5
		return &r
	}
	o.hear("b", election.Report{Voter: true, Roster: newer(1)})
	o.hear("b", election.Report{Voter: true, Roster: newer(2)})
	o.pass(testTiming.Heartbeat)
	r := o.request(o.take(), "b", "default")
	if r.Term != 6 || r.Roster.Version != newer(2).Version {
		t.Fatalf("asks for term %d at %v, want 6 at %v", r.Term, r.Roster.Version, newer(2).Version)
	}
	o.hear("b", grant(r))
	if s := o.status("default"); s.State != Leading || s.Term != 6 {
		t.Fatalf("%s in term %d, want leading in term 6", s.State, s.Term)
	}
}

// TestALateWordOfAnOutlivedTermIsNotBelieved: a leader that released its term knows that all
// earlier terms have ended too. Found by the simulation: it named its predecessor again, because of
// a heartbeat that arrived late.
func TestALateWordOfAnOutlivedTermIsNotBelieved(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Report{Voter: true, Records: []election.Record{{Election: "pay", Term: 4, Holder: election.Holder{Peer: "b", Lineage: 1}}}})
	o.elect("pay")
	led := o.status("pay").Term
	o.step(election.Withdraw{Election: "pay"})
	o.step(election.Stopped{Election: "pay", Term: led})
	o.hear("b", election.Heartbeat{Lineage: 1, Send: 3, Version: soloRoster.Version, Echo: o.now - 1,
		Claims: []election.Claim{{Election: "pay", Term: 4, Remaining: time.Second}}})
	if s := o.status("pay"); s.Leader.Peer != "" {
		t.Fatalf("names %s in term %d after it led in term %d", s.Leader, s.Term, led)
	}
}

// TestAHandOverIsNotHeldBackByTheOneBefore: an agent that waits for the target of a transfer stops
// waiting once that target leads.
func TestAHandOverIsNotHeldBackByTheOneBefore(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Report{Voter: true})
	o.hear("c", election.Report{Voter: true})
	o.campaign("pay")
	leads := func(from election.PeerID, term election.Term) {
		o.hear(from, election.Heartbeat{Lineage: 1, Send: election.SendID(term), Version: soloRoster.Version, Echo: o.now - 1,
			Claims: []election.Claim{{Election: "pay", Term: term, Remaining: time.Second}}})
		if s := o.status("pay"); s.Leader.Peer != from {
			t.Fatalf("%s leads, it names %s", from, s.Leader)
		}
	}
	leads("b", 1)
	o.hear("b", election.Release{Election: "pay", Term: 1, Holder: election.Holder{Peer: "b", Lineage: 1}, Target: "c"})
	leads("c", 2)
	o.clear()
	o.hear("c", election.Release{Election: "pay", Term: 2, Holder: election.Holder{Peer: "c", Lineage: 1}})
	if len(sentTo[election.VoteRequest](o.sent, "b")) == 0 {
		t.Errorf("it is the best left and asks for no votes, but wakes in %s", o.wake.Sub(o.now))
	}
}

// TestASupersededLeaderStartsNoRoundAgainstTheNext: the old leader heard the next one's heartbeats
// while its own programs were still stopping. Found by the simulation: without quorum it led again,
// and the two took turns.
func TestASupersededLeaderStartsNoRoundAgainstTheNext(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Report{Voter: true})
	o.elect("pay")
	term := o.status("pay").Term
	beat := func(send election.SendID) {
		o.hear("b", election.Heartbeat{Lineage: 1, Send: send, Version: soloRoster.Version, Echo: o.now - 1,
			Claims: []election.Claim{{Election: "pay", Term: term + 1, Remaining: time.Second}}})
	}
	for send := range election.SendID(4) { // until the deadline of its programs
		beat(send + 1)
		o.pass(testTiming.Heartbeat)
	}
	o.clear()
	o.step(election.Stopped{Election: "pay", Term: term})
	if len(sentTo[election.VoteRequest](o.sent, "b"))+len(sentTo[election.BullyElection](o.sent, "b")) > 0 {
		t.Error("it starts a round while it hears a leader")
	}
	beat(9)
	if s := o.status("pay"); s.Leader.Peer != "b" {
		t.Errorf("it names %q", s.Leader.Peer)
	}
}

// TestWhoHeedsALeaderAnswersNoToken: an agent that knew a leader started a round for each token,
// and ended it in the same step. Four such agents kept a ring of tokens going as fast as the
// network carried them. Found by the simulation.
func TestWhoHeedsALeaderAnswersNoToken(t *testing.T) {
	o := newSolo(t, func(c *election.Config, s *election.State) {
		c.Algorithm = election.Ring
		*s = trioState()
		s.Peer = "a"
	})
	o.hear("b", election.Report{Voter: true, Records: []election.Record{{Election: "default", Term: 3, Remaining: time.Second,
		Holder: election.Holder{Peer: "c", Lineage: 1}}}})
	o.hear("c", election.Report{Voter: true})
	o.campaign("default")
	o.clear()
	for round := range uint64(5) {
		o.hear("b", election.RingElection{Election: "default", Round: election.RoundID{Origin: "b", Number: round + 1},
			Best: election.Rank{Priority: 50, JoinedAt: 'b', Peer: "b"}})
	}
	if sent := sentTo[election.RingElection](o.sent, "b"); len(sent)+len(sentTo[election.RingElection](o.sent, "c")) > 0 {
		t.Errorf("it sends tokens although it has heard of a leader: %+v", o.sent)
	}
}

// TestElectionsThatVotersRememberLeaveRoomForThoseThatAre: voters reported so many former elections
// to an agent after its start that it had no room for one that was led. Found by the simulation.
func TestElectionsThatVotersRememberLeaveRoomForThoseThatAre(t *testing.T) {
	o := newLone(t, trioState())
	var past []election.Record
	for i := range election.MaxElections {
		past = append(past, election.Record{Election: election.Name(fmt.Sprintf("past-%d", i)), Term: 7})
	}
	o.hear("b", election.Report{Voter: true, Records: past})
	o.hear("b", election.Heartbeat{Lineage: 1, Send: 3, Version: soloRoster.Version, Echo: o.now - 1,
		Claims: []election.Claim{{Election: "pay", Term: 4, Remaining: time.Second}}})
	if s := o.status("pay"); s.Leader.Peer != "b" {
		t.Fatalf("names %q as the leader of an election that b leads", s.Leader.Peer)
	}
}

// TestG6ATermUpToTheFloorNamesNobody: a restarted voter holds a promise of a term that ended before
// the roster's floor was set. Found by the simulation: a majority of one such voter named the
// leader before the last.
func TestG6ATermUpToTheFloorNamesNobody(t *testing.T) {
	for _, floor := range []election.Term{2, 3} {
		state := trioState()
		state.Roster.Floor = floor
		o := newLone(t, state)
		o.step(election.Inquire{Election: "pay", Request: 4})
		id := last[election.Inquiry](o, "b").ID
		for _, p := range []election.PeerID{"b", "c"} {
			o.hear(p, election.Report{ID: id, Election: "pay", Voter: true, Roster: state.Roster, Records: []election.Record{
				{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Remaining: time.Second}}})
		}
		if len(o.replies) != 1 || (o.replies[0].Leader.Term == 3) != (floor < 3) {
			t.Errorf("floor %d: replies %+v about a leader of term 3", floor, o.replies)
		}
	}
}
