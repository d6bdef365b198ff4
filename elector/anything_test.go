package elector

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

// TestAnything shows that inputs and messages in any order, also invalid ones, never make an
// elector panic or wake itself endlessly. The same history gives the same output. Everything
// visible is on record, and the next life can go on from that record.
func TestAnything(t *testing.T) { rapid.Check(t, anything) }

func FuzzAnything(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(anything))
}

func anything(t *rapid.T) {
	cfg := election.Config{Self: soloSelf, Name: "a", JoinedAt: 1, Quorum: rapid.Bool().Draw(t, "quorum"),
		Algorithm: rapid.SampledFrom([]string{election.Bully, election.Ring}).Draw(t, "algorithm"), Timing: testTiming, Drift: election.DefaultDrift,
		Preempt: rapid.Bool().Draw(t, "preempt"), PreemptDelay: time.Second, Alone: rapid.Bool().Draw(t, "alone"),
		Voters: rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}, {"b", "a"}}).Draw(t, "voters")}
	s := election.State{Peer: "a", Roster: drawRoster(t)}
	if rapid.Bool().Draw(t, "trio") {
		s.Roster = rosterOf("a", "b", "c")
	}
	now := election.Instant(time.Hour)
	past := drawPast(t, &cfg, now)
	start := func() *Elector {
		e, err := New(cfg, s, past, now, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := start(), start()
	for _, in := range drawPrelude(t, &s) {
		one.Step(now, in)
		two.Step(now, in)
	}
	var onRecord election.LifeRecord
	if past != nil {
		onRecord = past.LifeRecord
	}
	for _, c := range one.contests.rows { // those of the prelude
		if a := one.authority(c); a.Highest != 0 {
			onRecord = virtual.Recorded(onRecord, &election.LifeRecord{Retired: one.retired, Spent: one.spent, Rows: []election.Authority{a}})
		}
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		now += election.Instant(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, -time.Second}).Draw(t, "passes"))
		in := drawInput(t)
		out, again := one.Step(now, in), two.Step(now, in)
		if !reflect.DeepEqual(out, again) {
			t.Fatalf("two outputs of one history:\n%+v\n%+v", out, again)
		}
		onRecord = recorded(onRecord, out)
		if problem := unrecorded(one, onRecord, out); problem != "" && !beyond(one) {
			t.Fatalf("after %T: %s", in, problem)
		}
		if out.WakeAt <= now && out.WakeAt <= one.now {
			t.Fatalf("wakes at %d, now is %d", out.WakeAt, now)
		}
		if len(out.Send) > 200 {
			t.Fatalf("%T makes it send %d messages", in, len(out.Send))
		}
		if out.Persist != nil && rapid.Bool().Draw(t, "written") {
			done := election.Persisted{Write: out.Persist.Write}
			after := one.Step(now, done)
			onRecord = recorded(onRecord, after)
			if !reflect.DeepEqual(after, two.Step(now, done)) {
				t.Fatal("two outputs of one history")
			}
		}
		if problem := stale(one); problem != "" {
			t.Fatalf("after %T: %s", in, problem)
		}
		one.Status(now)
	}
	if !beyond(one) {
		goesOn(t, cfg, s, onRecord, one.now)
	}
}

// beyond reports whether a roster has used up all terms. No agent sends such a roster.
func beyond(e *Elector) bool {
	r := e.heldRoster()
	return r != nil && r.Floor > election.MaxTerm ||
		slices.ContainsFunc(e.contests.rows, func(c *entry) bool { return c.Highest() > election.MaxTerm })
}

// drawPast draws what a former life left on record; nil: there was none.
func drawPast(t *rapid.T, cfg *election.Config, now election.Instant) *election.Past {
	if !rapid.Bool().Draw(t, "a later life") {
		return nil
	}
	cfg.Life = 1
	past := &election.Past{Lineage: election.Lineage{ID: soloSelf.Lineage, JoinedAt: 1, Lease: rapid.SampledFrom([]time.Duration{time.Second, testTiming.Lease}).Draw(t, "lease")}}
	for _, name := range []election.Name{election.RosterElection, "default", "jobs"} {
		a := election.Authority{Election: name, Highest: rapid.SampledFrom([]election.Term{1, 3, 9, election.MaxTerm}).Draw(t, "highest")}
		if name != election.RosterElection && rapid.Bool().Draw(t, "held") {
			a.Term, a.Priority = 1, rapid.IntRange(0, 2).Draw(t, "priority")
			a.Until = now + election.Instant(rapid.SampledFrom([]time.Duration{-time.Second, 1, time.Second}).Draw(t, "until"))
			switch rapid.IntRange(0, 3).Draw(t, "ends") {
			case 0:
				a.Ending = election.Ending{Reason: election.ReasonTransferred, To: drawPeer(t), StopBy: a.Until}
			case 1:
				a.Until = election.Never
			}
		}
		if rapid.Bool().Draw(t, "on record") {
			past.Rows = append(past.Rows, a)
		}
	}
	return past
}

// goesOn starts the next life, and checks that it leads or hands over what is on record.
func goesOn(t *rapid.T, cfg election.Config, s election.State, r election.LifeRecord, now election.Instant) {
	noName := func(a election.Authority) bool { return a.Election == "" }
	if slices.ContainsFunc(r.Rows, noName) || max(r.Retired, r.Spent) > election.MaxTerm {
		return // no agent is given such a name, or such terms
	}
	past := &election.Past{Lineage: election.Lineage{ID: soloSelf.Lineage, Life: cfg.Life, JoinedAt: 1, Lease: testTiming.Lease}, LifeRecord: r}
	cfg.Life++
	e, err := New(cfg, s, past, now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatalf("can't go on from %+v: %v", r, err)
	}
	for _, a := range r.Rows {
		c := e.contests.get(a.Election)
		if a.Term != 0 && (c.Term() != a.Term || (c.Role() == contest.Leaving) != (a.Ending.Reason != "")) {
			t.Fatalf("goes on with term %d as %d from %+v", c.Term(), c.Role(), a)
		}
	}
}

// drawPrelude returns inputs after which an agent with a valid roster asks for votes, so that the
// invalid inputs come in every role.
func drawPrelude(t *rapid.T, s *election.State) (ins []election.Input) {
	if !rapid.Bool().Draw(t, "prelude") {
		return nil
	}
	for _, p := range []election.PeerID{"b", "c"} {
		ins = append(ins, election.PeerConnected{Peer: p, Lineage: 1}, election.Received{From: p, Message: election.Report{Voter: true, Roster: s.Roster}})
	}
	ins = append(ins, election.Campaign{Election: "default", Priority: 1}, election.Persisted{Write: 1}, election.Persisted{Write: 1})
	for send := election.SendID(1); send < 8; send++ {
		ins = append(ins, election.Received{From: "b", Message: election.VoteGrant{Election: "default", Term: 1, Holder: soloSelf, Send: send, Version: election.Version{Counter: 1}}})
	}
	if rapid.Bool().Draw(t, "changes the roster") {
		ins = append(ins, election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 9})
	}
	return ins
}

func drawPeer(t *rapid.T) election.PeerID {
	return rapid.SampledFrom([]election.PeerID{"a", "b", "c", "d", ""}).Draw(t, "peer")
}

func drawHolder(t *rapid.T) election.Holder {
	return election.Holder{Peer: drawPeer(t), Lineage: election.LineageID(rapid.SampledFrom([]uint64{0, 1, 7}).Draw(t, "boot"))}
}

func drawName(t *rapid.T) election.Name {
	return rapid.SampledFrom([]election.Name{"default", "jobs", election.RosterElection, ""}).Draw(t, "election")
}

func drawTerm(t *rapid.T) election.Term {
	return rapid.SampledFrom([]election.Term{0, 1, 2, 3, 9, 1 << 62, 1<<64 - 1}).Draw(t, "term")
}

func drawSend(t *rapid.T) election.SendID {
	return election.SendID(rapid.Uint64Range(0, 20).Draw(t, "send"))
}

func drawRank(t *rapid.T) election.Rank {
	return election.Rank{Priority: rapid.IntRange(-1, 2).Draw(t, "priority"), JoinedAt: int64(rapid.IntRange(0, 2).Draw(t, "joined")), Peer: drawPeer(t)}
}

func drawSpan(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, -1, time.Millisecond, time.Second, 1<<63 - 1, -1 << 63}).Draw(t, "span")
}

func drawVersion(t *rapid.T) election.Version {
	return election.Version{Driver: drawTerm(t), Counter: rapid.Uint64Range(0, 2).Draw(t, "counter")}
}

func drawVoters(t *rapid.T) (vs []election.Voter) {
	return rapid.SampledFrom([][]election.Voter{nil, voters("a"), voters("b"), voters("a", "b"), voters("a", "b", "c"), voters("d", "d"), {{}}}).Draw(t, "voters")
}

func drawRoster(t *rapid.T) *election.Roster {
	if rapid.Bool().Draw(t, "no roster") {
		return nil
	}
	return &election.Roster{Cluster: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "cluster"), Version: drawVersion(t),
		Voters: drawVoters(t), Next: drawVoters(t), Floor: drawTerm(t)}
}

func drawGenesis(t *rapid.T) election.Genesis {
	g := election.Genesis{Proposer: drawPeer(t), Attempt: rapid.Uint64Range(0, 2).Draw(t, "attempt")}
	if r := drawRoster(t); r != nil {
		g.Roster = *r
	}
	return g
}

func drawInput(t *rapid.T) election.Input {
	request := election.RequestID(1)
	switch rapid.IntRange(0, 31).Draw(t, "input") {
	case 0:
		return election.Tick{}
	case 31:
		return election.Overtake{Election: drawName(t)}
	case 1:
		h := drawHolder(t)
		return election.PeerConnected{Peer: h.Peer, Lineage: h.Lineage}
	case 2:
		return election.PeerLost{Peer: drawPeer(t)}
	case 3:
		return election.Persisted{Write: rapid.Uint64Range(0, 5).Draw(t, "write")}
	case 4:
		return election.PersistFailed{Write: rapid.Uint64Range(0, 5).Draw(t, "write")}
	case 5:
		return election.Campaign{Election: drawName(t), Priority: rapid.IntRange(-1, 2).Draw(t, "priority")}
	case 6:
		return election.Withdraw{Election: drawName(t), Remaining: rapid.IntRange(0, 200).Draw(t, "remaining")}
	case 7:
		return election.Stopped{Election: drawName(t), Term: drawTerm(t)}
	case 8:
		return election.Resign{Election: drawName(t), Request: request}
	case 9:
		return election.Transfer{Election: drawName(t), To: drawPeer(t), Request: request}
	case 10:
		return election.Drain{On: rapid.Bool().Draw(t, "on"), Request: request}
	case 11:
		if rapid.Bool().Draw(t, "suspended") {
			return election.Suspended{}
		}
		return election.Inquire{Election: drawName(t), Request: request}
	case 12:
		return election.ChangeRoster{Add: drawVoters(t), Remove: []election.PeerID{drawPeer(t)}, Request: request}
	case 13:
		if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
			return election.Shutdown{}
		}
		return nil
	case 14:
		return election.ViewChanged{View: drawView(t)}
	}
	return election.Received{From: drawPeer(t), Message: drawMessage(t)}
}

func drawView(t *rapid.T) election.View {
	var v election.View
	for _, p := range []election.PeerID{"a", "b", "c", "d"} {
		if rapid.Bool().Draw(t, "live") {
			v.Members = append(v.Members, election.Member{Peer: p, Lineage: 1, Name: string(p), JoinedAt: 1, Draining: rapid.Bool().Draw(t, "drains"),
				Suspected: rapid.Bool().Draw(t, "suspected"), Candidacies: []election.Candidacy{{Election: drawName(t), Priority: rapid.IntRange(-1, 200).Draw(t, "p")}}})
		}
	}
	return v
}

func drawMessage(t *rapid.T) election.Message {
	name, term, holder, span := drawName(t), drawTerm(t), drawHolder(t), drawSpan(t)
	switch rapid.IntRange(0, 23).Draw(t, "message") {
	case 22:
		return election.Candidacies{Lineage: holder.Lineage, Serial: uint64(drawSend(t)), Candidacies: []election.Candidacy{{Election: name, Priority: rapid.IntRange(0, 200).Draw(t, "p")}}}
	case 23:
		return election.CandidaciesAck{Lineage: holder.Lineage, Serial: uint64(drawSend(t)), By: 1}
	case 0:
		return election.BullyElection{Election: name, Round: uint64(drawSend(t)), Rank: drawRank(t)}
	case 1:
		return election.BullyAnswer{Election: name, Round: uint64(drawSend(t))}
	case 2:
		return election.BullyDecline{Election: name, Round: uint64(drawSend(t))}
	case 3:
		return election.BullyCoordinator{Election: name, Term: term, Leader: holder}
	case 4:
		return election.RingElection{Election: name, Round: election.RoundID{Origin: drawPeer(t), Number: uint64(drawSend(t))}, Best: drawRank(t)}
	case 5:
		return election.RingAck{Election: name, Round: election.RoundID{Origin: drawPeer(t), Number: uint64(drawSend(t))}, Best: drawPeer(t)}
	case 6:
		return election.RingElected{Election: name, Term: term, Leader: holder}
	case 7, 8:
		m := election.VoteRequest{Election: name, Term: term, Holder: holder, Lease: span, Send: drawSend(t), Rank: drawRank(t)}
		if r := drawRoster(t); r != nil {
			m.Roster = *r
		}
		return m
	case 9:
		return election.VoteGrant{Election: name, Term: term, Holder: holder, Send: drawSend(t), Version: drawVersion(t), Stamp: election.Instant(span)}
	case 10:
		return election.VoteRefusal{Election: name, Term: term, Holder: holder, Granted: drawTerm(t), GrantedTo: drawHolder(t), Remaining: drawSpan(t),
			Reason: election.RefusalReason(rapid.IntRange(0, 9).Draw(t, "reason")), Roster: drawRoster(t)}
	case 11:
		return election.Release{Election: name, Term: term, Holder: holder, Target: drawPeer(t), StandDown: drawSpan(t)}
	case 12, 13:
		return election.Heartbeat{Lineage: holder.Lineage, Send: drawSend(t), Version: drawVersion(t), Echo: election.Instant(span),
			Claims: []election.Claim{{Election: name, Term: term, Remaining: drawSpan(t), Rank: drawRank(t)}}}
	case 14:
		return election.HeartbeatAck{Lineage: holder.Lineage, Send: drawSend(t), Version: drawVersion(t), Stamp: election.Instant(span),
			Nacks: []election.Nack{{Election: name, Term: term}}, Roster: drawRoster(t)}
	case 15:
		return election.Inquiry{ID: uint64(drawSend(t))}
	case 16:
		return election.Report{ID: uint64(drawSend(t)), Voter: rapid.Bool().Draw(t, "voter"), Roster: drawRoster(t),
			Records: []election.Record{{Election: name, Term: term, Holder: holder, Remaining: span}}, Stamp: election.Instant(drawSpan(t))}
	case 17:
		return election.GenesisPropose{Genesis: drawGenesis(t)}
	case 18:
		return election.GenesisAccept{Cluster: "x", Attempt: uint64(drawSend(t))}
	case 19:
		return election.GenesisRefuse{Cluster: "x", Attempt: uint64(drawSend(t)), Reason: election.GenesisInvalid}
	case 20:
		m := election.RosterPropose{Driver: term, Holder: holder}
		if r := drawRoster(t); r != nil {
			m.Roster = *r
		}
		return m
	}
	if rapid.Bool().Draw(t, "accepts") {
		return election.RosterAccept{Driver: term, Version: drawVersion(t), Highest: drawTerm(t)}
	}
	return election.RosterRefuse{Driver: term, Version: drawVersion(t), Granted: drawTerm(t), Roster: drawRoster(t)}
}
