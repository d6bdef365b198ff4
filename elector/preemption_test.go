package elector

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestPreemptionByACandidateThatCannotLeadIsNotTriedForEver: b has the highest priority, but its
// disk fails. The leader can't know that, but must not try b again after every preempt delay.
func TestPreemptionByACandidateThatCannotLeadIsNotTriedForEver(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.nodes["b"].prio = 200
	for _, n := range c.names {
		c.start(n)
	}
	c.run(20 * time.Millisecond)
	l := c.nodes["b"].elector.ledger
	l.Change(func(*election.State) {})
	l.Failed(l.Next(c.Now).Write, c.Now.Add(time.Hour))
	c.input("b", election.Resign{Election: election.Default})
	c.run(2 * time.Second)
	leaderless := 0
	for range 600 { // a minute
		c.run(100 * time.Millisecond)
		if c.leaders() == "" {
			leaderless++
		}
	}
	if leaderless > 30 {
		t.Fatalf("nobody led for %d of 600 samples", leaderless)
	}
}

// TestARivalThatTakesNothingIsOfferedLessAndLess: the rival may be unable to lead for a reason that
// no other agent knows.
func TestARivalThatTakesNothingIsOfferedLessAndLess(t *testing.T) {
	o := newLone(t, trioState())
	o.elect("pay")
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "pay", Priority: 200}}})
	offers := 0
	for end := o.now.Add(time.Minute); o.now < end; {
		o.pass(testTiming.Heartbeat / 4)
		for _, w := range o.withdrawn {
			if w.Reason == election.ReasonPreempted {
				offers++
			}
			o.step(election.Stopped{Election: w.Election, Term: w.Term})
		}
		for _, m := range o.take() {
			switch asked := m.Message.(type) {
			case election.Heartbeat:
				o.hear(m.To, ack(asked))
			case election.VoteRequest:
				o.hear(m.To, grant(asked))
			}
		}
	}
	if offers < 2 || offers > 8 {
		t.Errorf("it was offered %d times in a minute", offers)
	}
}

// TestARivalThatHoldsOtherVotersIsOfferedNothing: it asks for votes under a roster that the voters
// here do not adopt, and gets none.
func TestARivalThatHoldsOtherVotersIsOfferedNothing(t *testing.T) {
	o := newLone(t, trioState())
	o.elect("pay")
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "pay", Priority: 200}}})
	holds := election.Version{Driver: 2}
	offered := func(d time.Duration) (is bool) {
		for end := o.now.Add(d); o.now < end; {
			o.pass(testTiming.Heartbeat / 4)
			is = is || len(o.withdrawn) > 0
			for _, m := range o.take() {
				if beat, ok := m.Message.(election.Heartbeat); ok {
					a := ack(beat)
					if m.To == "b" {
						a.Version = holds
					}
					o.hear(m.To, a)
				}
			}
		}
		return is
	}
	if offered(10 * time.Second) {
		t.Fatal("it was offered the leadership, which it can't take")
	}
	if holds = o.e.roster.Version; !offered(time.Second) {
		t.Fatal("it was not offered the leadership, though it holds the same voters now")
	}
}

// TestTheSuccessorIsChosenAtTheRelease: what acts under a term may need a lease to stop. Meanwhile
// the intended successor may have withdrawn.
func TestTheSuccessorIsChosenAtTheRelease(t *testing.T) {
	stands := func(o *solo, p election.PeerID, serial uint64, priority int) {
		m := election.Candidacies{Lineage: 1, Serial: serial}
		if priority > 0 {
			m.Candidacies = []election.Candidacy{{Election: "pay", Priority: priority}}
		}
		o.hear(p, m)
	}
	lapse := 2 * voteTimeout
	for _, test := range []struct {
		name      string
		meanwhile func(*solo)
		target    election.PeerID
		standDown time.Duration
	}{
		{"preempted", func(o *solo) {}, "b", lapse},
		{"preempted, the rival is no better any more", func(o *solo) { stands(o, "b", 2, 100) }, "", 0},
		{"preempted, the rival is gone", func(o *solo) { stands(o, "b", 2, 0) }, "", 0},
		{"preempted, an even better one came", func(o *solo) { stands(o, "c", 2, 300) }, "c", lapse},
		{"transferred", func(o *solo) {}, "c", lapse},
		{"transferred, the target is gone, another stands", func(o *solo) { stands(o, "c", 2, 0) }, "", lapse},
		{"resigned", func(o *solo) {}, "", testTiming.Lease},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newLone(t, trioState())
			o.elect("pay")
			stands(o, "c", 1, 100)
			switch reason, _, _ := strings.Cut(test.name, ","); reason {
			case "preempted":
				stands(o, "b", 1, 200)
				o.rest(time.Second)
			case "transferred":
				stands(o, "b", 1, 100)
				o.step(election.Transfer{Election: "pay", To: "c"})
			case "resigned":
				stands(o, "b", 1, 100)
				o.step(election.Resign{Election: "pay"})
			}
			if len(o.withdrawn) != 1 {
				t.Fatalf("withdrawals %+v, want one", o.withdrawn)
			}
			term := o.withdrawn[0].Term
			test.meanwhile(o)
			o.take()
			o.step(election.Stopped{Election: "pay", Term: term})
			releases := sentTo[election.Release](o.take(), "b")
			if len(releases) != 1 || releases[0].Target != test.target || releases[0].StandDown != test.standDown {
				t.Errorf("releases %+v, want for %q and a stand-down of %s", releases, test.target, test.standDown)
			}
		})
	}
}

func TestPreemptionIsConfiguredWhileALeaderLeads(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c")
	for _, n := range c.names {
		c.start(n)
	}
	c.run(20 * time.Millisecond)
	first, _, _ := strings.Cut(c.leaders(), "@")
	better := map[string]string{"a": "b", "b": "c", "c": "a"}[first]
	for _, n := range c.names {
		c.input(n, election.Configure{})
	}
	c.input(better, election.Campaign{Election: election.Default, Priority: 200})
	c.run(time.Minute)
	if got := c.leaders(); !strings.HasPrefix(got, first+"@") {
		t.Fatalf("%s leads, not %s, although nobody preempts", got, first)
	}
	c.input(first, election.Configure{Preempt: true, PreemptDelay: time.Second})
	c.run(3 * time.Second)
	if got := c.leaders(); !strings.HasPrefix(got, better+"@") {
		t.Errorf("%s leads, not the better %s", got, better)
	}
}
