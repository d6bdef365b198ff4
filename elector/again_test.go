package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// a drives a change of a, b, c to a, b, c, d, and dies when only a has accepted the outcome.
// Another driver proposes the marked roster again. One voter misses that, and gets the outcome from
// a, which is back. Voters with the outcome must accept the repeated change. Otherwise two voters
// have one roster and two the other, and no majority exists.
func TestR3AChangeGoesOnThoughTwoVotersHoldItsFormerEnd(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["d"].observe = true
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	const (
		changing = iota
		ended    // proposed by a only to itself
		orphaned // a is dead
		again    // proposed by another driver, and lost on the way to one voter
	)
	stage, driver, lacks := changing, "", ""
	c.spy = func(from string, e election.Envelope) {
		m, ok := e.Message.(election.RosterPropose)
		switch {
		case !ok:
		case stage == changing && from == "a" && !m.Roster.Joint():
			stage = ended
			for _, n := range []string{"b", "c", "d"} {
				c.cut["a>"+n] = true
			}
		case stage == orphaned && from != "a":
			stage, driver, lacks = again, from, "d"
			if from == "d" {
				lacks = "c"
			}
			c.cut[from+">"+lacks] = true
		}
	}
	c.input("a", election.ChangeRoster{Add: nodesOf("d"), Request: 1})
	until := func(what string, done func() bool) {
		t.Helper()
		for range 8000 {
			if done() {
				return
			}
			c.run(time.Millisecond)
		}
		t.Fatalf("%s: not after 8 s\n%s", what, c.trace.String())
	}
	until("a accepts the end of its change alone", func() bool { return stage == ended && !c.nodes["a"].Disk.Roster.Joint() })
	c.run(2 * sync)
	c.kill("a")
	stage = orphaned
	until("another takes the change over", func() bool { return stage == again })
	clear(c.cut)
	for _, n := range []string{"b", "c", "d"} {
		if n != lacks {
			c.cut[n+">"+lacks] = true
		}
	}
	c.start("a")
	c.run(50 * time.Millisecond)
	if r := c.roster(lacks); r.Joint() || r.Version.Driver == c.roster(driver).Version.Driver {
		t.Fatalf("%s holds %v, want the end of a's change", lacks, r.Version)
	}
	clear(c.cut) // from here on nothing is lost
	c.run(6 * testTiming.Lease)
	for _, n := range c.names {
		c.wantVoters(n, "a,b,c,d")
		if v := c.roster(n).Version; v != c.roster("a").Version {
			t.Fatalf("%s holds %v, a %v", n, v, c.roster("a").Version)
		}
	}
	if c.leaders() == "" {
		t.Fatal("nobody leads")
	}
}
