package elector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// What the literature promises or warns of, shown with whole electors: S. D. Stoller, "Leader
// Election in Asynchronous Distributed Systems", IEEE Trans. Computers 49(3), 2000; D. Ongaro,
// "Consensus: Bridging Theory and Practice", Stanford 2014.

// led returns a cluster that one agent has led for a while.
func led(t *testing.T, algo string, names ...string) *cluster {
	t.Helper()
	c := newCluster(t, algo, names...)
	for _, n := range names {
		c.start(n)
	}
	c.watch(3 * testTiming.Lease)
	if c.leaders() != "a@1" {
		t.Fatalf("leaders are %q, want a@1:\n%s", c.leaders(), c.trace.String())
	}
	return c
}

// part cuts both directions between two agents, or restores them.
func (c *cluster) part(a, b string, cut bool) { c.cut[a+">"+b], c.cut[b+">"+a] = cut, cut }

// alone cuts one agent off from all others, or reconnects it.
func (c *cluster) alone(name string, cut bool) {
	for _, other := range c.names {
		if other != name {
			c.part(name, other, cut)
		}
	}
}

// watch lets time pass, and fails the test if two agents lead at once. It returns all leaders in
// their order.
func (c *cluster) watch(d time.Duration) string {
	c.t.Helper()
	var seen []string
	for end := c.Now.Add(d); ; {
		if now := c.leaders(); now != "" && (len(seen) == 0 || seen[len(seen)-1] != now) {
			seen = append(seen, now)
			if strings.Contains(now, " ") {
				c.t.Fatalf("%s lead at once:\n%s", now, c.trace.String())
			}
		}
		if !c.Happen(end) {
			return strings.Join(seen, " ")
		}
	}
}

func eachAlgorithm(t *testing.T, test func(*testing.T, string)) {
	for _, a := range []string{election.Bully, election.Ring} {
		t.Run(string(a), func(t *testing.T) { test(t, a) })
	}
}

// TestStoller2000TwoNomineesAreContained: timeouts make two candidates each believe that the other
// is dead. The original algorithm then elects both. Here the voters confirm one, and the live
// leader keeps its term.
func TestStoller2000TwoNomineesAreContained(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		c := led(t, a, "a", "b", "c")
		c.part("a", "b", true)
		if seen := c.watch(20 * testTiming.Lease); seen != "a@1" {
			t.Errorf("%s led while a and b could not hear each other, want a@1 throughout", seen)
		}
		t.Logf("b asked for votes %d times, in vain", c.nodes["b"].elector.Counters().Attempts)
		c.part("a", "b", false)
		if seen := c.watch(3 * testTiming.Lease); !onlyLeads(seen, "a") {
			t.Errorf("%s led after the two met again, want a", seen)
		}
	})
}

// TestStoller2000TwoNomineesWithNoLeaderAreContained shows the same for a cold start: both are
// nominated, but only one leads at a time.
func TestStoller2000TwoNomineesWithNoLeaderAreContained(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		c := newCluster(t, a, "a", "b", "c", "d", "e")
		for _, n := range c.names {
			c.start(n)
		}
		c.watch(10 * time.Millisecond) // they have a roster, but no leader yet
		c.part("a", "b", true)
		if seen := c.watch(20 * testTiming.Lease); seen == "" || strings.Contains(seen, " ") {
			t.Errorf("%q led, want one leader for good", seen)
		}
	})
}

// TestStoller2000ARestartedBestDeposesNobody: the best process comes back and remembers nothing. It
// does not depose the live leader, and is not mistaken for its former life.
func TestStoller2000ARestartedBestDeposesNobody(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		c := led(t, a, "a", "b", "c")
		c.kill("a")
		if seen := c.watch(3 * testTiming.Lease); seen != "b@2" {
			t.Fatalf("%q led after a died, want b@2:\n%s", seen, c.trace.String())
		}
		c.start("a")
		if seen := c.watch(10 * testTiming.Lease); seen != "b@2" {
			t.Errorf("%q led after a came back, want b@2 throughout", seen)
		}
	})
}

// TestOngaro2014SplitVotesResolve shows section 3.4: candidates that split the votes retry after
// random times, and one of them wins. First, of four voters, c hears only a, and d only b, so that
// a and b have half of the votes each. Then all hear each other again.
func TestOngaro2014SplitVotesResolve(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		slowest, attempts := time.Duration(0), uint64(0)
		for cut := testTiming.Lease / 10; cut < 3*testTiming.Lease; cut += 73 * time.Millisecond {
			c := newCluster(t, a, "a", "b", "c", "d")
			for _, n := range c.names {
				c.start(n)
			}
			c.watch(9 * time.Millisecond) // they have a roster, and ask for the first votes
			split := func(on bool) {
				for _, ways := range []string{"ab", "ad", "bc", "cd"} {
					c.part(ways[:1], ways[1:], on)
				}
			}
			split(true)
			if seen := c.watch(cut); seen != "" {
				t.Fatalf("%s led with half of the votes:\n%s", seen, c.trace.String())
			}
			for _, n := range c.names {
				attempts += c.nodes[n].elector.Counters().Attempts
			}
			split(false)
			healed := c.Now
			for c.leaders() == "" && c.Now < healed.Add(6*testTiming.Lease) {
				c.watch(5 * time.Millisecond)
			}
			slowest = max(slowest, c.Now.Sub(healed))
			if c.leaders() == "" {
				t.Fatalf("nobody leads %s after votes were split for %s:\n%s", c.Now.Sub(healed), cut, c.trace.String())
			}
		}
		t.Logf("%d attempts failed; slowest to resolve: %s, a lease being %s", attempts, slowest, testTiming.Lease)
		if attempts < 40 {
			t.Errorf("only %d attempts: votes were hardly split", attempts)
		}
	})
}

// TestOngaro2014ARejoiningServerDisruptsNobody shows what pre-vote achieves in section 9.6: a
// server that campaigned in vain while it was cut off deposes no live leader when it is back. The
// leader takes exactly one higher term, so that this server can vote for it again.
func TestOngaro2014ARejoiningServerDisruptsNobody(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		for _, name := range []string{"b", "c"} {
			c := led(t, a, "a", "b", "c")
			c.alone(name, true)
			if seen := c.watch(20 * testTiming.Lease); seen != "a@1" {
				t.Errorf("%s led while %s was cut off, want a@1", seen, name)
			}
			c.alone(name, false)
			if seen := c.watch(5 * testTiming.Lease); !onlyLeads(seen, "a") || strings.Count(seen, "@") > 2 {
				t.Errorf("%s led after %s came back, want a, in one higher term at most", seen, name)
			}
			leads := c.leaders()
			for _, n := range c.names {
				if known := c.known(n); known != leads {
					t.Errorf("%s names %q after %s came back, want %s", n, known, name, leads)
				}
				if g := c.nodes[n].Disk.Grants[election.Default]; leads != fmt.Sprintf("a@%d", g.Term) {
					t.Errorf("%s has granted term %d, %s leads", n, g.Term, leads)
				}
			}
		}
	})
}

// TestOngaro2014ARestartedServerDisruptsNobody shows section 4.2.3: a restarted server hears the
// leader before it starts a campaign.
func TestOngaro2014ARestartedServerDisruptsNobody(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		c := led(t, a, "a", "b", "c")
		for range 3 {
			c.kill("b")
			c.watch(testTiming.Lease / 2)
			c.start("b")
			if seen := c.watch(2 * testTiming.Lease); seen != "a@1" {
				t.Fatalf("%s led after b restarted, want a@1", seen)
			}
		}
	})
}

// TestOngaro2014ALeaderWithoutMajorityStepsDown shows section 6.2 (CheckQuorum in etcd): a leader
// that can't reach a majority steps down by itself, within a lease, before another agent leads.
func TestOngaro2014ALeaderWithoutMajorityStepsDown(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a string) {
		c := led(t, a, "a", "b", "c")
		c.alone("a", true)
		cut := c.Now
		for c.leaders() == "a@1" {
			c.watch(time.Millisecond)
		}
		if took := c.Now.Sub(cut); took > testTiming.Lease {
			t.Errorf("a led for %s after it was cut off, more than a lease", took)
		}
		if known := c.known("a"); known != "" {
			t.Errorf("a still names %q", known)
		}
		seen := c.watch(5 * testTiming.Lease)
		if seen == "" || !strings.HasPrefix(seen, "b@") && !strings.HasPrefix(seen, "c@") {
			t.Fatalf("%q led after a, want b or c", seen)
		}
		c.alone("a", false)
		if again := c.watch(5 * testTiming.Lease); !onlyLeads(again, seen[:1]) {
			t.Errorf("%s led after a came back, want %s", again, seen[:1])
		}
	})
}
