package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func TestH3TheLeaseIsCountedFromTheRequest(t *testing.T) {
	s := newSolo(t, nil)
	s.step(election.Campaign{Election: election.Default, Priority: 100})
	s.answerRound()
	asked := s.sent[len(s.sent)-1].at
	r := last[election.VoteRequest](s, "b")
	s.now = asked.Add(50 * time.Millisecond)
	s.hear("b", grant(r))
	if got := s.status(election.Default); got.State != Leading || got.ValidUntil != asked.Add(ownLease) {
		t.Fatalf("%s until %d, want leading until %d", got.State, got.ValidUntil, asked.Add(ownLease))
	}
}

func TestH3ARenewalIsCountedFromTheHeartbeat(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.clear()
	s.pass(testTiming.Heartbeat)
	h := last[election.Heartbeat](s, "b")
	sent := s.sent[len(s.sent)-1].at
	s.now = sent.Add(testTiming.Heartbeat / 2)
	s.hear("b", ack(h))
	s.hear("c", ack(h)) // a majority without a's own voter
	if got := s.status(election.Default).ValidUntil; got != sent.Add(ownLease) {
		t.Fatalf("leads until %d, want %d", got, sent.Add(ownLease))
	}
}

func TestH5ALeaderWithdrawsBeforeItsLeaseEnds(t *testing.T) {
	s := newSolo(t, nil).leader()
	end := s.status(election.Default).ValidUntil
	for len(s.withdrawn) == 0 && s.now < end {
		s.pass(testTiming.Heartbeat / 20)
	}
	if len(s.withdrawn) != 1 || s.now >= end || s.withdrawn[0].StopBy > end {
		t.Fatalf("at %d withdrew %+v, want it before the end at %d", s.now, s.withdrawn, end)
	}
	if s.leads(election.Default) {
		t.Fatal("says that it leads after the withdrawal")
	}
}

func TestH5OneLeaseEndsWhileAnotherIsRenewed(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.clear()
	s.elect("later")
	end := s.status("later").ValidUntil
	var withdrawn []election.Withdrawal
	for s.now < end && len(withdrawn) == 0 {
		s.pass(testTiming.Heartbeat / 4)
		withdrawn = append(withdrawn, s.withdrawn...)
		for _, h := range sentTo[election.Heartbeat](s.take(), "b") {
			s.hear("b", ack(h, election.Nack{Election: "later"}))
		}
	}
	if len(withdrawn) != 1 || withdrawn[0].Election != "later" || s.now >= end {
		t.Fatalf("at %d withdrew %+v, want later before its end at %d", s.now, withdrawn, end)
	}
	if !s.leads(election.Default) {
		t.Fatal("leads default no more, though b renewed it")
	}
}

func TestH4OnlyAnAckOfThisBootAndWithoutANackRenews(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.clear()
	s.pass(testTiming.Heartbeat)
	h := last[election.Heartbeat](s, "b")
	end := s.status(election.Default).ValidUntil
	former := ack(h)
	former.Lineage--
	unknown := ack(h)
	unknown.Send += 1000
	version := ack(h)
	version.Version.Counter++
	for name, m := range map[string]election.HeartbeatAck{
		"of a former life": former, "of no send": unknown, "at another version": version,
		"with a nack": ack(h, election.Nack{Election: election.Default}),
	} {
		s.hear("b", m)
		if got := s.status(election.Default).ValidUntil; got != end {
			t.Errorf("an ack %s moves the lease by %v", name, got.Sub(end))
		}
	}
	s.hear("d", ack(h)) // not a member that a knows
	s.hear("b", ack(h))
	if got := s.status(election.Default).ValidUntil; got <= end {
		t.Error("the right ack renews nothing")
	}
}

// TestH4AnAckOfAHeartbeatThatDidNotClaimTheTermRenewsNothing: c has promised nothing in payments.
// It only acknowledged a heartbeat sent before a won payments.
func TestH4AnAckOfAHeartbeatThatDidNotClaimTheTermRenewsNothing(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.clear()
	s.step(election.Campaign{Election: "payments", Priority: 100})
	s.answerRound()
	asked, r := s.now, sentTo[election.VoteRequest](s.sent, "b")[0]
	s.pass(testTiming.Heartbeat)
	h := last[election.Heartbeat](s, "c") // claims only default
	if len(h.Claims) != 1 {
		t.Fatalf("claims %+v before payments is won", h.Claims)
	}
	s.now = s.now.Add(time.Millisecond)
	s.hear("b", grant(r))
	if got := s.status("payments"); got.State != Leading || got.ValidUntil != asked.Add(ownLease) {
		t.Fatalf("payments: %s until %d, want leading until %d", got.State, got.ValidUntil, asked.Add(ownLease))
	}
	s.hear("c", ack(h))
	if got := s.status("payments").ValidUntil; got != asked.Add(ownLease) {
		t.Fatalf("c's ack moves the lease of payments by %v", got.Sub(asked.Add(ownLease)))
	}
}

func TestH6ATermIsReleasedOnlyOnceItsProgramsHaveStopped(t *testing.T) {
	for name, stop := range map[string]bool{"by receipt": true, "by its last deadline": false} {
		s := newSolo(t, nil).leader()
		s.clear()
		s.step(election.Resign{Election: election.Default, Request: 1})
		if len(s.withdrawn) != 1 {
			t.Fatalf("withdrew %+v", s.withdrawn)
		}
		w := s.withdrawn[0]
		s.pass(w.StopBy.Sub(s.now) - time.Millisecond)
		if ms := sentTo[election.Release](s.sent, "b"); len(ms) != 0 {
			t.Fatalf("%s: released %+v %v before the deadline its programs were told", name, ms, time.Millisecond)
		}
		if stop {
			s.step(election.Stopped{Election: election.Default, Term: w.Term + 1}) // about another term
			if ms := sentTo[election.Release](s.sent, "b"); len(ms) != 0 {
				t.Fatal("released by the receipt of another term")
			}
			s.step(election.Stopped{Election: election.Default, Term: w.Term})
		} else {
			s.pass(2 * time.Millisecond)
		}
		if m := last[election.Release](s, "b"); m.Term != w.Term || m.StandDown == 0 {
			t.Errorf("%s: released %+v, want term %d", name, m, w.Term)
		}
	}
}

func TestWithoutQuorumTheLowerTermStepsDown(t *testing.T) {
	s := newSolo(t, func(c *election.Config, st *election.State) { c.Quorum = false; st.Roster = nil })
	s.step(election.Campaign{Election: election.Default, Priority: 100})
	s.pass(2 * testTiming.Lease)
	if !s.leads(election.Default) {
		t.Fatal("does not lead without quorum")
	}
	term := s.status(election.Default).Term
	beat := func(other election.Term, rank int) election.Heartbeat {
		return election.Heartbeat{Lineage: 1, Send: 1, Claims: []election.Claim{{Election: election.Default, Term: other,
			Remaining: testTiming.Lease, Rank: election.Rank{Priority: rank, Peer: "b"}}}}
	}
	s.hear("b", beat(term-1, 200))
	s.hear("b", beat(term, 50))
	if !s.leads(election.Default) {
		t.Fatal("stepped down before a lower term, or a lower rank in the same")
	}
	s.hear("b", beat(term+1, 50))
	if s.leads(election.Default) || len(s.withdrawn) != 1 {
		t.Fatal("goes on beside a higher term")
	}
}
