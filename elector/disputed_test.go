package elector

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// TestALeaderTakesAHigherTermWhereItsOwnIsDisputed: c has promised the leader's term, or a higher
// one, to another holder, so c can't renew the leader. Then b is lost. Found by the simulation: a
// leader that a majority could hear lost its lease.
func TestALeaderTakesAHigherTermWhereItsOwnIsDisputed(t *testing.T) {
	for name, dispute := range map[string]func(o *solo, term election.Term){
		"by a refusal": func(o *solo, term election.Term) {
			o.hear("c", refusalOf(o.request(o.sent, "c", "pay"), term))
		},
		"by a nack": func(o *solo, term election.Term) {
			o.hear("c", ack(last[election.Heartbeat](o, "c"), election.Nack{Election: "pay", Term: term + 4}))
		},
		"by nobody": func(*solo, election.Term) {},
	} {
		for _, silently := range []bool{false, true} {
			disputed(t, name, dispute, silently)
		}
	}
}

// disputed makes agent a the leader, which then loses b: b's connection closes or, if silently, stays open.
func disputed(t *testing.T, name string, dispute func(*solo, election.Term), silently bool) {
	o := newLone(t, trioState())
	term := o.elect("pay").Term
	dispute(o, term)
	if o.pass(testTiming.Heartbeat / 2); o.status("pay").Term != term {
		t.Errorf("disputed %s: it takes a higher term while a majority renews this one", name)
	}
	if !silently {
		o.step(election.PeerLost{Peer: "b"})
	}
	for o.leads("pay") && o.status("pay").Term == term {
		o.pass(testTiming.Heartbeat / 4)
		for _, q := range sentTo[election.VoteRequest](o.take(), "c") {
			if q.Term > term {
				o.hear("c", grant(q))
			}
		}
	}
	if rose := o.status("pay").Term > term && o.leads("pay"); rose != (name != "by nobody") {
		t.Errorf("disputed %s, lost silently %t: it led in term %d, and is %s in term %d", name, silently, term, o.status("pay").State, o.status("pay").Term)
	}
}

// TestAHigherTermTakenWhileLeadingShortensNoDeadline: while a asks for a higher term, the old term
// may still be renewed, and programs get the later deadline. No other agent may lead before that
// deadline.
func TestAHigherTermTakenWhileLeadingShortensNoDeadline(t *testing.T) {
	five := *soloRoster
	five.Voters = append(slices.Clone(five.Voters), election.Voter{Name: "d", Peer: "d"}, election.Voter{Name: "e", Peer: "e"})
	o := newLone(t, election.State{Roster: &five})
	o.campaign("pay")
	first := o.request(o.sent, "b", "pay")
	for _, id := range []election.PeerID{"b", "c", "e"} {
		o.hear(id, grant(first))
	}
	o.hear("d", refusalOf(o.request(o.sent, "d", "pay"), first.Term))
	o.take()
	for _, id := range []election.PeerID{"b", "c"} {
		o.step(election.PeerLost{Peer: id})
	}
	early := o.request(o.take(), "d", "pay") // the request for the higher term
	if early.Term <= first.Term {
		t.Fatalf("it asks for term %d while it leads in term %d", early.Term, first.Term)
	}
	for _, id := range []election.PeerID{"b", "c"} {
		o.connect(id, election.Report{Voter: true, Roster: &five, Stamp: 5})
	}
	o.keep(2*testTiming.Heartbeat, "b", "c", "e")
	told := o.status("pay").ValidUntil
	if told <= o.now.Add(ownLease-testTiming.Heartbeat) {
		t.Fatal("the old term was not renewed")
	}
	o.hear("d", grant(early))
	o.hear("b", grant(early))
	for end := o.now.Add(testTiming.Heartbeat); o.now < end; o.pass(testTiming.Heartbeat / 8) {
		if s := o.status("pay"); s.ValidUntil < told {
			t.Fatalf("programs were told %d, and now it is %d (term %d)", told, s.ValidUntil, s.Term)
		}
	}
}
