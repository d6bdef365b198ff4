package elector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// TestTraces replays testdata/traces: which messages are sent when, from a cold start through
// takeovers. After -rewrite, read the difference.
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		var c *cluster
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "cluster" {
				c = clusterOf(t, d)
				return ""
			}
			c.t = t
			command(t, c, d)
			out := c.trace.String()
			c.trace.Reset()
			return out
		})
	})
}

func clusterOf(t *testing.T, d *datadriven.TestData) *cluster {
	var names []string
	for _, a := range d.CmdArgs {
		if a.Key == "names" {
			names = a.Vals
		}
	}
	c := newCluster(t, election.Bully, names...)
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "ring":
			c.algo = election.Ring
		case "observers":
			for _, v := range a.Vals {
				c.nodes[v].observe = true
			}
		case "view":
			c.quorum = false
		case "words":
			c.level = election.LevelWords
		case "priority":
			for _, v := range a.Vals {
				name, p, _ := strings.Cut(v, "=")
				fmt.Sscan(p, &c.nodes[name].prio)
			}
		}
	}
	return c
}

func command(t *testing.T, c *cluster, d *datadriven.TestData) {
	arg := func(i int) string { return d.CmdArgs[i].Key }
	switch d.Cmd {
	case "start":
		for _, a := range d.CmdArgs {
			c.start(a.Key)
		}
	case "run":
		span, err := time.ParseDuration(arg(0))
		if err != nil {
			t.Fatal(err)
		}
		c.run(span)
	case "kill":
		c.kill(arg(0))
	case "cut": // from>to, without notice
		for _, a := range d.CmdArgs {
			c.cut[a.Key] = true
		}
	case "mend":
		clear(c.cut)
	case "resign":
		c.input(arg(0), election.Resign{Election: election.Default, Request: 1})
	case "withdraw": // its program has ended; a second argument is the term under which nothing acts
		w := election.Withdraw{Election: election.Default}
		if len(d.CmdArgs) > 1 {
			fmt.Sscan(arg(1), &w.Stopped)
		}
		c.input(arg(0), w)
	case "transfer":
		c.input(arg(0), election.Transfer{Election: election.Default, To: election.PeerID(arg(1)), Request: 1})
	case "write": // agent term ID text: replaces the word with that ID; ID 0: it writes the first word
		w := election.WriteWord{Election: election.Default, Text: arg(3), Request: 1}
		fmt.Sscan(arg(1), &w.Term)
		if id := strings.Split(arg(2), "."); len(id) == 3 {
			var life, n uint64
			fmt.Sscan(id[0], &w.If.Term)
			fmt.Sscan(id[1], &life)
			fmt.Sscan(id[2], &n)
			w.If.Seq = life<<40 + n
		}
		c.input(arg(0), w)
	case "want":
		c.input(arg(0), election.ReadWord{Election: election.Default, Request: 1})
	case "drain":
		c.input(arg(0), election.Drain{On: true, Request: 1})
	case "restart":
		c.nodes[arg(0)].Up = false
		c.tracef("%s is restarted", arg(0))
		c.start(arg(0))
	case "dies": // the next life starts at once
		c.nodes[arg(0)].Up = false
		c.tracef("%s dies", arg(0))
		c.begin(arg(0), c.nodes[arg(0)].Lineage)
	case "shutdown":
		c.input(arg(0), election.Shutdown{})
	case "roster": // agent add=(x) remove=(y)
		change := election.ChangeRoster{Request: 1}
		for _, a := range d.CmdArgs[1:] {
			for _, v := range a.Vals {
				if a.Key == "add" {
					change.Add = append(change.Add, election.Voter{Name: v, Peer: election.PeerID(v)})
				} else {
					change.Remove = append(change.Remove, election.PeerID(v))
				}
			}
		}
		c.input(arg(0), change)
	case "stubborn":
		c.nodes[arg(0)].Stubborn = true
	case "leaders":
		c.tracef("leads: %s", c.leaders())
		for _, n := range c.names {
			if c.nodes[n].Up {
				if r := c.nodes[n].elector.Status(c.Now).Roster; r != nil && len(c.names) > 3 {
					c.tracef("%s has roster %s", n, messages.Roster(r))
				}
				c.tracef("%s names %q", n, c.known(n))
			}
		}
	case "replies":
		for _, r := range c.nodes[arg(0)].replies {
			if r.Refusal != nil {
				c.tracef("refused: %s", r.Refusal.Why)
				continue
			}
			text := "done"
			if r.Word != (election.Word{}) {
				text += ", the word is " + messages.Word(r.Word)
			}
			c.tracef("%s", text)
		}
		c.nodes[arg(0)].replies = nil
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}
