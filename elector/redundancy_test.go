package elector

import (
	"strings"
	"testing"
	"time"
)

// TestAVoterThatCameBackWithAHigherTermRenewsWithinALease: c was cut off from the
// leader, asked for votes meanwhile, and promised itself a higher term. Once it is
// back it can't renew the leader's, so until the leader takes a higher one its vote
// is missing, and b's loss would end the leadership.
func TestAVoterThatCameBackWithAHigherTermRenewsWithinALease(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, algo string) {
		for round := range 30 {
			c := led(t, algo, "a", "b", "c")
			c.part("a", "c", true)
			c.watch(4*testTiming.Lease + time.Duration(round)*7*time.Millisecond)
			c.part("a", "c", false)
			c.watch(2 * testTiming.Heartbeat)
			if q := c.nodes["a"].elector.Status(c.Now).Quorum; round == 0 && (q.Reachable != 2 || !q.Edge || !q.Exists) {
				t.Errorf("c can't renew what a leads, and a says %+v", q)
			}
			c.watch(testTiming.Lease - 2*testTiming.Heartbeat)
			if q := c.nodes["a"].elector.Status(c.Now).Quorum; q.Reachable != 3 || q.Edge {
				t.Errorf("round %d: a lease after c came back a says %+v", round, q)
			}
			c.part("a", "b", true)
			if seen := c.watch(4 * testTiming.Lease); !onlyLeads(seen, "a") {
				t.Fatalf("round %d: %q led after a and b could not hear each other, want a throughout:\n%s", round, seen, c.trace.String())
			}
		}
	})
}

// onlyLeads reports whether all that led, as watch returns it, is one agent.
func onlyLeads(seen, name string) bool {
	for leader := range strings.FieldsSeq(seen) {
		if !strings.HasPrefix(leader, name+"@") {
			return false
		}
	}
	return seen != ""
}
