package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// suspend is the first input after a suspend. a's clock counted that much of it: in fact the
// suspend may have been much longer.
func (s *solo) suspend(counted time.Duration) {
	s.now = s.now.Add(counted)
	s.step(election.Suspended{})
}

// TestASuspendedLeaderLeadsNothingUntilItHasWonAgain: by its clock, nearly all of its lease is
// left, but b and c may have elected another agent.
func TestASuspendedLeaderLeadsNothingUntilItHasWonAgain(t *testing.T) {
	o := newLone(t, trioState())
	won := o.elect("pay")
	beat := last[election.Heartbeat](o, "b")
	o.clear()
	o.suspend(time.Millisecond)
	if len(o.withdrawn) != 1 || o.withdrawn[0].Reason != election.ReasonSuspended || o.withdrawn[0].Term != won.Term {
		t.Fatalf("withdrawals %+v", o.withdrawn)
	}
	o.hear("b", ack(beat))
	o.hear("c", ack(beat))
	o.hear("c", grant(won))
	o.pass(testTiming.Heartbeat)
	if o.leads("pay") || len(sentTo[election.Heartbeat](o.take(), "b")) != 0 {
		t.Fatal("it leads, or claims to, by what it was told before")
	}
	o.step(election.Stopped{Election: "pay", Term: won.Term})
	if r := last[election.Release](o, "b"); r.Term != won.Term {
		t.Fatalf("released term %d, want %d", r.Term, won.Term)
	}
	o.answerRound()
	again := o.request(o.sent, "b", "pay")
	if again.Term <= won.Term || again.Send <= beat.Send {
		t.Fatalf("asks for term %d by send %d, after term %d and send %d", again.Term, again.Send, won.Term, beat.Send)
	}
	o.hear("b", grant(again))
	if !o.leads("pay") {
		t.Fatal("it has won again, and does not lead")
	}
}

// TestG5AHandOverUnderWayAtASuspendIsNotClaimedAfterIt: by its clock the lease still runs, but it
// may have ended. If a claimed it, b and c would name a until the lease's end. The hand-over itself
// continues.
func TestG5AHandOverUnderWayAtASuspendIsNotClaimedAfterIt(t *testing.T) {
	o := newLone(t, trioState())
	o.view.Members[1].Candidacies = []election.Candidacy{{Election: "pay", Priority: 50}}
	o.step(election.ViewChanged{View: o.view})
	won := o.elect("pay")
	o.step(election.Transfer{Election: "pay", To: "b"})
	o.take()
	o.pass(testTiming.Heartbeat)
	if len(sentTo[election.Heartbeat](o.take(), "b")) == 0 {
		t.Fatal("a hand-over is claimed until the term is released, and this one is not")
	}
	o.suspend(time.Millisecond)
	o.pass(2 * testTiming.Heartbeat)
	if beats := sentTo[election.Heartbeat](o.take(), "b"); len(beats) != 0 {
		t.Errorf("claims %+v: how long that lease still runs nobody knows", beats[0].Claims)
	}
	o.step(election.Stopped{Election: "pay", Term: won.Term})
	if r := last[election.Release](o, "b"); r.Term != won.Term || r.Target != "b" {
		t.Errorf("released %+v, want term %d for b", r, won.Term)
	}
}

func TestH2NoAnswerToASendFromBeforeASuspendCounts(t *testing.T) {
	o := newLone(t, trioState())
	o.campaign("pay")
	o.answerRound()
	asked := o.request(o.take(), "b", "pay")
	o.suspend(time.Millisecond)
	o.hear("b", grant(asked))
	o.hear("c", grant(asked))
	if o.leads("pay") {
		t.Fatal("it leads by votes that it asked for before the suspend")
	}
	if r := last[election.Release](o, "b"); r.Term != asked.Term {
		t.Errorf("released term %d, want %d: nobody else needs to wait for it", r.Term, asked.Term)
	}
}

// TestAVoterThatWasSuspendedHoldsItsPromises: its clock counted a second too much.
func TestAVoterThatWasSuspendedHoldsItsPromises(t *testing.T) {
	o := newLone(t, trioState())
	ask := func(p election.PeerID, term election.Term) []delivery {
		o.take()
		o.hear(p, election.VoteRequest{Election: "pay", Term: term, Holder: election.Holder{Peer: p, Lineage: 1}, Lease: testTiming.Lease,
			Send: election.SendID(term), Rank: election.Rank{Priority: 100, Peer: p}, Roster: *soloRoster})
		return o.sent
	}
	if g := sentTo[election.VoteGrant](ask("b", 1), "b"); len(g) != 1 {
		t.Fatalf("b's request: %+v", o.sent)
	}
	o.suspend(2 * testTiming.Lease)
	hold := quorum.Outlast(testTiming.Lease, election.DefaultDrift)
	for left := hold; left > 5; left -= hold / 5 {
		if g := sentTo[election.VoteGrant](ask("c", 2), "c"); len(g) != 0 {
			t.Fatalf("granted to c while b may lead for %s", left)
		}
		o.pass(hold / 5)
	}
	o.pass(time.Millisecond)
	if g := sentTo[election.VoteGrant](ask("c", 2), "c"); len(g) != 1 {
		t.Fatalf("not granted to c when the hold had ended: %+v", o.sent)
	}
}

func TestG5AFollowedLeaderIsNotNamedByWhatWasSaidBeforeASuspend(t *testing.T) {
	o, beat := following(t)
	o.suspend(time.Millisecond)
	if len(o.announced) != 2 || o.announced[1].Event != election.NoLeader || o.announced[1].Reason != election.ReasonSuspended {
		t.Errorf("announced %+v", o.announced)
	}
	o.hear("b", beat)
	if c := o.status("default"); c.Leader.Peer != "" {
		t.Fatalf("names %v for %s: how long ago b said so nobody knows", c.Leader, c.ValidUntil.Sub(o.now))
	}
	beat.Send, beat.Echo = 2, o.now
	o.hear("b", beat)
	if c := o.status("default"); c.Leader.Peer != "b" {
		t.Fatalf("names %v, want b, which answered after the suspend", c.Leader)
	}
}

// TestR4ADriverDoesNotWaitAcrossASuspend: b's promises may still run, though this host's clock
// shows that they have ended.
func TestR4ADriverDoesNotWaitAcrossASuspend(t *testing.T) {
	o, joint := changing(t, 0)
	marked := o.mark(joint, "d", "b", "c")
	o.accept("b", marked, 1)
	o.accept("d", marked, 1)
	o.step(election.PeerLost{Peer: "b"})
	o.step(election.PeerLost{Peer: "c"}) // so that there is no way back now
	o.take()
	o.suspend(2 * testTiming.Lease)
	o.hear("d", election.Report{Voter: true, Roster: &marked.Roster})
	o.pass(testTiming.Heartbeat)
	proposed := sentTo[election.RosterPropose](o.take(), "d")
	if len(proposed) == 0 {
		t.Fatal("d is not asked again")
	}
	for _, p := range proposed {
		if !p.Roster.Joint() {
			t.Fatalf("proposes %+v before b's promises have ended", p.Roster)
		}
	}
}
