package elector

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// scribes are three agents that know words; a leads.
func scribes(t *testing.T) *cluster {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.level = election.LevelWords
	for _, n := range c.names {
		c.start(n)
	}
	c.run(time.Second)
	if got := c.leaders(); got != "a@1" {
		t.Fatalf("leads: %s", got)
	}
	return c
}

func idOf(term election.Term, life, n uint64) election.WordRank {
	return election.WordRank{Term: term, Seq: life<<40 + n}
}

func (c *cluster) write(name string, term election.Term, replaced election.WordRank, text string) {
	c.input(name, election.WriteWord{Election: election.Default, Term: term, If: replaced, Text: text, Request: 1})
}

// reply returns the only reply that the agent has given since the last call.
func (c *cluster) reply(name string) election.Reply {
	c.t.Helper()
	n := c.nodes[name]
	if len(n.replies) != 1 {
		c.t.Fatalf("%s replies %+v, want one", name, n.replies)
	}
	r := n.replies[0]
	n.replies = nil
	return r
}

func (c *cluster) written(name, text string) {
	c.t.Helper()
	if r := c.reply(name); r.Refusal != nil || r.Word.Text != text {
		c.t.Fatalf("%s replies %+v, want that %q is written", name, r, text)
	}
}

func (c *cluster) refused(name string, why election.Denial) {
	c.t.Helper()
	if r := c.reply(name); r.Refusal == nil || r.Refusal.Why != why {
		c.t.Fatalf("%s replies %+v, want the refusal %q", name, r, why)
	}
}

// disk is the word that the agent has on disk.
func (c *cluster) disk(name string) election.Word { return c.nodes[name].Disk.Words[election.Default] }

func TestW5AWriteIsRepeatedUntilAllVotersHaveIt(t *testing.T) {
	c := scribes(t)
	c.cut["a>c"], c.cut["a>b"] = true, true
	c.write("a", 1, election.WordRank{}, "x")
	c.run(50 * time.Millisecond)
	if n := len(c.nodes["a"].replies); n != 0 {
		t.Fatal("done without a majority")
	}
	delete(c.cut, "a>b")
	c.run(250 * time.Millisecond)
	c.written("a", "x")
	if c.disk("c") != (election.Word{}) {
		t.Fatal("c has it already")
	}
	clear(c.cut)
	c.run(time.Second)
	if c.disk("c") != c.disk("a") {
		t.Errorf("c has %+v, a has %+v", c.disk("c"), c.disk("a"))
	}
}

func TestW5ALostWriteIsToldAsUnknown(t *testing.T) {
	c := scribes(t)
	c.cut["a>b"], c.cut["a>c"] = true, true
	c.write("a", 1, election.WordRank{}, "x")
	c.run(2 * time.Second)
	c.refused("a", election.DeniedWordUnknown)
}

func TestW6OneWriteAtATimeAndOnlyInPlaceOfTheWordThatItNames(t *testing.T) {
	c := scribes(t)
	c.write("b", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.refused("b", election.DeniedNotLeader)
	c.write("a", 2, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedNotLeader)
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.written("a", "x")
	c.write("a", 1, election.WordRank{}, "y")
	c.run(20 * time.Millisecond)
	if r := c.reply("a"); r.Refusal == nil || r.Refusal.Why != election.DeniedWordChanged || r.Word.Text != "x" {
		t.Fatalf("replies %+v, want that the word is x", r)
	}
	c.cut["a>b"], c.cut["a>c"] = true, true
	c.write("a", 1, idOf(1, 0, 1), "y")
	c.run(20 * time.Millisecond)
	c.write("a", 1, idOf(1, 0, 1), "z")
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedWordBusy)
}

// A voter has granted a higher term, so the leader takes a still higher one. The leader's write goes on in that term.
func TestW8AWriteGoesOnInTheTermThatOvertakes(t *testing.T) {
	c := scribes(t)
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.written("a", "x")
	c.cut["a>b"], c.cut["a>c"] = true, true
	c.write("a", 1, idOf(1, 0, 1), "y")
	c.run(20 * time.Millisecond)
	clear(c.cut)
	c.input("a", election.Overtake{Election: election.Default})
	c.run(500 * time.Millisecond)
	if got := c.leaders(); got != "a@2" {
		t.Fatalf("leads: %s", got)
	}
	c.written("a", "y")
	for _, n := range c.names {
		if w := c.disk(n); w.Text != "y" || w.Rank.Term != 2 {
			t.Errorf("%s has %+v", n, w)
		}
	}
}

func TestW12AWriteIsTakenUntilTheReceipt(t *testing.T) {
	c := scribes(t)
	c.nodes["a"].Stubborn = true
	c.input("a", election.Resign{Election: election.Default, Request: 2})
	c.run(20 * time.Millisecond)
	c.reply("a")
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.written("a", "x")
	// A write is in progress while the receipt is given. It can't be confirmed any more.
	c.cut["a>b"], c.cut["a>c"] = true, true
	c.write("a", 1, idOf(1, 0, 1), "y")
	c.run(20 * time.Millisecond)
	c.input("a", election.Stopped{Election: election.Default, Term: 1})
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedWordUnknown)
	c.write("a", 1, idOf(1, 0, 1), "z")
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedNotLeader)
}

// A program that acts may write its last word before its receipt, even under the next life of its agent.
func TestW12ANextLifeThatHandsOverWritesToo(t *testing.T) {
	c := scribes(t)
	c.nodes["a"].Stubborn = true
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.written("a", "x")
	c.nodes["a"].Up = false
	c.begin("a", c.nodes["a"].Lineage)
	c.run(50 * time.Millisecond)
	c.input("a", election.Resign{Election: election.Default, Request: 2})
	c.run(20 * time.Millisecond)
	c.reply("a")
	c.write("a", 1, idOf(1, 0, 1), "stopped")
	c.run(50 * time.Millisecond)
	c.written("a", "stopped")
}

func TestAWordThatCantBeKeptIsRefused(t *testing.T) {
	c := scribes(t)
	for _, text := range []string{strings.Repeat("x", election.MaxWord+1), "\xff"} {
		c.write("a", 1, election.WordRank{}, text)
		c.run(20 * time.Millisecond)
		c.refused("a", election.DeniedWordText)
	}
}

func TestNoWordIsWrittenUntilAllAgentsKnowWords(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c")
	c.level = election.LevelWords
	c.start("a")
	c.start("b")
	c.run(time.Second)
	c.level = election.LevelSettings
	c.start("c")
	c.run(time.Second)
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedOlderVersion)
	c.kill("c")
	c.run(time.Second)
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.refused("a", election.DeniedFirstWord)
}

// Once all voters have deleted a word, nothing of it is left. Until then, the program learns which voter
// still has it.
func TestW11ADeletedWordLeavesNothing(t *testing.T) {
	c := scribes(t)
	c.write("a", 1, election.WordRank{}, "x")
	c.run(20 * time.Millisecond)
	c.written("a", "x")
	c.cut["a>c"] = true
	c.write("a", 1, idOf(1, 0, 1), "")
	c.run(100 * time.Millisecond)
	if n := len(c.nodes["a"].replies); n != 0 {
		t.Fatal("it does not wait for c")
	}
	c.run(testTiming.Lease)
	r := c.reply("a")
	if r.Refusal == nil || r.Refusal.Why != election.DeniedWordRemains || r.Refusal.Agent != "c" || r.Word.Text != "" {
		t.Fatalf("replies %+v, want that c has it still", r)
	}
	clear(c.cut)
	c.write("a", 1, r.Word.ID, "")
	c.run(testTiming.Lease)
	c.written("a", "")
	c.input("a", election.Resign{Election: election.Default, Request: 2})
	c.run(time.Second)
	c.reply("a")
	for _, n := range c.names {
		if s := c.nodes[n].Disk; len(s.Words) != 0 || s.KeepsWords {
			t.Errorf("%s keeps %+v", n, s.Words)
		}
	}
	leads := c.leaders()
	if leads == "" || leads == "a@1" {
		t.Fatalf("leads: %q", leads)
	}
}
