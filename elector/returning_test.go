package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestAReturningAgentLearnsOfTheLeaderBeforeItIsConnectedToIt: the agent first connects to a
// follower. If it did not wait, it would ask for a term above the leader's, and its own voter would
// grant that. Then the leader would have to take a still higher term.
func TestAReturningAgentLearnsOfTheLeaderBeforeItIsConnectedToIt(t *testing.T) {
	for _, algo := range []string{election.Bully, election.Ring} {
		for late := 10 * time.Millisecond; late <= 300*time.Millisecond; late += 10 * time.Millisecond {
			c := newCluster(t, algo, "a", "b", "c")
			c.late = map[string]time.Duration{}
			for _, name := range c.names {
				c.start(name)
			}
			c.run(2 * testTiming.Lease)
			c.kill("a")
			c.run(2 * testTiming.Lease)
			before := c.leaders()
			c.late["a>b"], c.late["b>a"] = late, late
			c.spy = func(from string, e election.Envelope) {
				if r, asks := e.Message.(election.VoteRequest); asks && from == "a" && r.Election == election.Default {
					t.Errorf("%s, %v later: a asks for term %d", algo, late, r.Term)
				}
			}
			c.begin("a", c.nodes["a"].Lineage) // with its record, and so with its former rank
			c.run(2 * testTiming.Lease)
			if got := c.leaders(); got != before || got != "b@2" {
				t.Errorf("%s, %v later: %s leads, then %s; want b@2", algo, late, before, got)
			}
		}
	}
}

// TestAnOrderForAnotherTermIsRefused: after a freeze, a leader may receive an order for another term.
func TestAnOrderForAnotherTermIsRefused(t *testing.T) {
	for name, order := range map[string]func(election.Term) election.Input{
		"resign": func(t election.Term) election.Input {
			return election.Resign{Election: election.Default, Term: t, Request: 1}
		},
		"transfer": func(t election.Term) election.Input {
			return election.Transfer{Election: election.Default, To: "b", Term: t, Request: 1}
		},
	} {
		s := newSolo(t, nil).leader()
		term := s.status(election.Default).Term
		s.step(order(term + 1))
		if len(s.replies) != 1 || s.replies[0].Refusal == nil || s.replies[0].Refusal.Why != election.DeniedNotLeader || !s.leads(election.Default) {
			t.Errorf("%s of term %d, leading in %d: %+v", name, term+1, term, s.replies)
		}
		s.step(order(term))
		if s.leads(election.Default) {
			t.Errorf("%s of term %d: it leads on", name, term)
		}
	}
}
