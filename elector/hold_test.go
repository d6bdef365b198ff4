package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// startedAgain is three agents. The first leader was killed, another took over, and the first was
// started again, by the duration `since` ago. For a lease, its voter holds its former promises (V5). It
// connects to the leader at once, and to the third agent after the delay `late`.
func startedAgain(t *testing.T, algo string, since, late time.Duration) *cluster {
	t.Helper()
	c := led(t, algo, "a", "b", "c")
	c.kill("a")
	for c.leaders() == "" || c.leaders() == "a@1" {
		c.watch(time.Millisecond)
	}
	c.watch(100 * time.Millisecond)
	third := map[string]string{"b": "c", "c": "b"}[c.leader()]
	c.late = map[string]time.Duration{"a>" + third: late, third + ">a": late}
	c.start("a")
	c.watch(since)
	return c
}

// leader is the leading agent, or "".
func (c *cluster) leader() string {
	if leads := c.leaders(); leads != "" {
		return leads[:1]
	}
	return ""
}

// untilAnother lets time pass until another agent leads, and returns how long that took.
func (c *cluster) untilAnother(than string, atMost time.Duration) (time.Duration, error) {
	from := c.Now
	for c.leader() == "" || c.leader() == than {
		if c.Now.Sub(from) > atMost {
			return 0, fmt.Errorf("nobody but %s led within %s", than, atMost)
		}
		c.watch(time.Millisecond)
	}
	return c.Now.Sub(from), nil
}

// TestAHoldIsWaitedForLikeAPromise: the leader dies while another agent, just restarted, still
// holds its vote. The vote is needed, and is given as soon as the hold has ended.
func TestAHoldIsWaitedForLikeAPromise(t *testing.T) {
	limit := quorum.Outlast(testTiming.Lease, election.DefaultDrift) + 30*time.Millisecond
	eachAlgorithm(t, func(t *testing.T, algo string) {
		for since := 3 * time.Millisecond; since < testTiming.Lease*5/4; since += 67 * time.Millisecond {
			c := startedAgain(t, algo, since, 0)
			dies := c.leader()
			c.kill(dies)
			if took, err := c.untilAnother(dies, 2*testTiming.Lease); err != nil || took > limit {
				t.Errorf("killed %s after a's start: %s until another led, at most %s is wanted %v", since, took, limit, err)
			}
		}
	})
}

// TestAHandOverDoesNotWaitForAHold: two voters without a hold suffice, one of them the agent that
// hands over. If the agent with the hold asked for their votes, the third agent could not get them.
func TestAHandOverDoesNotWaitForAHold(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, algo string) {
		for how, in := range map[string]election.Input{"shutdown": election.Shutdown{}, "resign": election.Resign{Election: election.Default},
			"transfer": election.Transfer{Election: election.Default, To: "a"}} {
			for since := 3 * time.Millisecond; since < testTiming.Lease*5/4; since += 10*time.Millisecond + since/2 {
				for _, late := range []time.Duration{0, since, since + 2*time.Millisecond, since + 70*time.Millisecond} {
					if late > 200*time.Millisecond || how == "transfer" && late > since {
						continue // by then all are connected; a target that is not connected has no majority
					}
					handOverBesideAHold(t, algo, how, in, since, late)
				}
			}
		}
	})
}

func handOverBesideAHold(t *testing.T, algo string, how string, in election.Input, since, late time.Duration) {
	t.Helper()
	c := startedAgain(t, algo, since, late)
	from := c.leader()
	c.input(from, in)
	took, err := c.untilAnother(from, 2*testTiming.Lease)
	if err != nil || took > 20*time.Millisecond {
		t.Errorf("%s %s after a's start, which knew the third agent after %s: %s until another led, at most 20ms is wanted %v", how, since, late, took, err)
		return
	}
	next := c.leader()
	if in == (election.Shutdown{}) {
		c.watch(50 * time.Millisecond)
		c.kill(from)
	}
	if seen := c.watch(2 * testTiming.Lease); !onlyLeads(seen, next) {
		t.Errorf("%s %s after a's start: %s led first, then %q", how, since, next, seen)
	}
}

// TestAVoterThatMissedAReleaseHoldsNobodyUp: the leadership that c has on record has ended, as its
// holder announced.
func TestAVoterThatMissedAReleaseHoldsNobodyUp(t *testing.T) {
	o, _ := following(t)
	o.campaign("default")
	b := election.Holder{Peer: "b", Lineage: 1}
	o.hear("b", election.Release{Election: "default", Term: 5, Holder: b, StandDown: time.Second})
	o.hear("c", election.Report{Voter: true, Roster: o.disk.Roster, Records: []election.Record{{Election: "default", Term: 5, Holder: b, Remaining: time.Second}}})
	o.take()
	o.pass(testTiming.Heartbeat)
	if len(sentTo[election.VoteRequest](o.sent, "c")) == 0 {
		t.Fatal("it waits for b, which gave its term back")
	}
}
