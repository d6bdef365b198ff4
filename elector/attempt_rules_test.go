package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func voters(names ...string) (vs []election.Voter) {
	for _, n := range names {
		vs = append(vs, election.Voter{Name: n, Peer: election.PeerID(n)})
	}
	return vs
}

func rosterOf(names ...string) *election.Roster {
	return &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: voters(names...)}
}

func trioState() election.State { return election.State{Roster: rosterOf("a", "b", "c")} }

func refusalOf(r election.VoteRequest, granted election.Term) election.VoteRefusal {
	return election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder, Granted: granted,
		Reason: election.RefusedStaleTerm}
}

func TestH1NoTermIsAskedForTwice(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	last := election.Term(0)
	for range 4 {
		r := s.request(s.take(), "b", "default")
		if r.Term <= last {
			t.Fatalf("asks for term %d after term %d", r.Term, last)
		}
		last = r.Term
		for _, id := range []election.PeerID{"b", "c"} {
			s.hear(id, refusalOf(r, 0))
		}
		for range 1000 { // until the next attempt
			if len(sentTo[election.VoteRequest](s.sent, "b")) > 0 {
				break
			}
			s.pass(5 * time.Millisecond)
		}
	}
}

func TestH2EachCopyOfARequestCountsFromItsOwnSend(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	first := s.request(s.take(), "b", "default")
	asked := s.now
	s.pass(300 * time.Millisecond)
	if again := s.request(s.take(), "b", "default"); again.Send == first.Send {
		t.Fatal("a retransmission has the number of the first send")
	}
	s.hear("b", grant(first))
	want := asked.Add(ownLease)
	if got := s.status("default").ValidUntil; got != want {
		t.Fatalf("the lease ends at %d, want %d: from the send that b answered", got, want)
	}
}

func TestH4AVoteForAnotherBootTermOrSendIsDropped(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	early := s.request(s.take(), "b", "default")
	s.hear("b", refusalOf(early, 4))
	s.hear("c", refusalOf(early, 4))
	s.pass(400 * time.Millisecond)
	r := s.request(s.take(), "b", "default")
	if r.Term == early.Term {
		t.Fatalf("the attempt for term %d was not given up", early.Term)
	}
	stale := grant(r)
	stale.Holder.Lineage = 99
	unknown := grant(r)
	unknown.Send += 1000
	otherVersion := grant(r)
	otherVersion.Version.Counter++
	for name, g := range map[string]election.VoteGrant{
		"of a's former boot": stale, "for an attempt given up": grant(early), "for a send that never was": unknown,
		"at another version": otherVersion,
	} {
		s.hear("b", g)
		s.hear("stranger", grant(r))
		if s.leads("default") {
			t.Fatalf("a vote %s made a leader", name)
		}
	}
	s.hear("b", grant(r))
	if !s.leads("default") {
		t.Fatal("the vote it asked for did not make a leader")
	}
}

func TestH4ARefusalOfAFormerBootEndsNoAttempt(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	r := s.request(s.take(), "b", "default")
	old := refusalOf(r, 50)
	old.Holder.Lineage = 99
	s.hear("b", old)
	s.hear("c", old)
	if out := sentTo[election.Release](s.take(), "b"); len(out) != 0 {
		t.Fatalf("gave its votes back: %+v", out)
	}
	s.hear("b", grant(r))
	if !s.leads("default") {
		t.Fatal("the attempt is over")
	}
}

func TestH6ALeaderReleasesNoTermOfAnAttemptWhileItLeads(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	early := s.request(s.take(), "b", "default")
	s.hear("b", refusalOf(early, 4))
	s.hear("c", refusalOf(early, 4))
	s.pass(400 * time.Millisecond)
	s.hear("b", grant(s.request(s.take(), "b", "default")))
	s.take()
	late := grant(early)
	s.hear("c", late)
	if out := sentTo[election.Release](s.take(), "c"); len(out) != 0 {
		t.Fatalf("a leader sent %+v", out)
	}
	s.step(election.Withdraw{Election: "default"})
	s.hear("c", late)
	if out := sentTo[election.Release](s.take(), "c"); len(out) != 0 {
		t.Fatalf("sent %+v before those who act on its behalf have stopped", out)
	}
}

func TestH7AClosedConnectionShortensNoPromise(t *testing.T) {
	s := newLone(t, trioState())
	b := election.Holder{Peer: "b", Lineage: 1}
	ask := election.VoteRequest{Election: "default", Term: 1, Holder: b, Lease: testTiming.Lease, Send: 1,
		Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *s.disk.Roster}
	s.hear("b", ask)
	if len(sentTo[election.VoteGrant](s.take(), "b")) != 1 {
		t.Fatal("b did not get the vote")
	}
	promised := s.now
	s.step(election.PeerLost{Peer: "b"})
	for s.now < promised.Add(testTiming.Lease)-1 {
		ask.Term, ask.Send = ask.Term+1, ask.Send+1
		ask.Holder, ask.Rank.Peer = election.Holder{Peer: "c", Lineage: 1}, "c"
		s.hear("c", ask)
		if len(sentTo[election.VoteGrant](s.take(), "c")) != 0 {
			t.Fatalf("c got the vote %s after b did", s.now.Sub(promised))
		}
		s.now = min(s.now.Add(50*time.Millisecond), promised.Add(testTiming.Lease)-1)
	}
}
