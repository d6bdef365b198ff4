package elector

import (
	"strings"
	"testing"
	"time"
)

// TestAVoterThatCameBackWithAHigherTermRenewsWithinALease: c was cut off from the leader, asked for
// votes meanwhile, and promised itself a higher term. When it is back, it can renew only a still
// higher term of the leader. Until the leader takes one, c's vote is missing, and the loss of b
// would end the leadership.
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

// onlyLeads reports whether the given agent is the only one among the leaders that watch returned.
func onlyLeads(seen, name string) bool {
	for leader := range strings.FieldsSeq(seen) {
		if !strings.HasPrefix(leader, name+"@") {
			return false
		}
	}
	return seen != ""
}
