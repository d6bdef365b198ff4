package elector

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
	"github.com/doyen-election/doyen/testbed/messages"
)

const (
	hop  = time.Millisecond     // how long a message takes
	sync = 2 * time.Millisecond // how long a write takes
)

var testTiming = election.Timing{Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond}

const voteTimeout = 400 * time.Millisecond // of an elector with that timing

// cluster is a few electors in one virtual time, with a readable trace. Its network is perfect
// except for what a test cuts.
type cluster struct {
	virtual.Cluster
	t      *testing.T
	nodes  map[string]*node
	names  []string
	cut    map[string]bool // "a>b": messages from a to b vanish
	trace  strings.Builder
	quiet  bool // omit frequent messages from the trace: heartbeats, reports, candidacies, and their answers
	spy    func(from string, e election.Envelope)
	steps  int // how many steps were made since the instant below
	since  election.Instant
	algo   string
	quorum bool
	late   map[string]time.Duration // "a>b": how much later than usual a hears that b is connected
	level  uint64                   // the feature level of agents that start now
	beat   time.Duration            // the heartbeat interval that agents report when they start now; 0: none
}

type node struct {
	*virtual.Agent
	elector *Elector
	joined  int64
	observe bool // not among the first voters
	prio    int
	level   uint64
	beat    time.Duration
	replies []election.Reply
}

func newCluster(t *testing.T, algo string, names ...string) *cluster {
	c := &cluster{t: t, nodes: map[string]*node{}, names: names, cut: map[string]bool{}, quiet: true, algo: algo, quorum: true}
	c.Cut = func(from, to *virtual.Agent) bool { return c.cut[string(from.Peer+">"+to.Peer)] }
	c.Delay = func(from, to *virtual.Agent) time.Duration { return hop }
	c.Write = func(*virtual.Agent) time.Duration { return sync }
	c.Watch = c.did
	for _, n := range names {
		id := election.PeerID(n)
		c.nodes[n] = &node{prio: 100, Agent: &virtual.Agent{Holder: election.Holder{Peer: id}, Disk: election.State{Peer: id}}}
		c.Add(c.nodes[n].Agent)
	}
	return c
}

func (c *cluster) tracef(format string, args ...any) {
	fmt.Fprintf(&c.trace, "%7.1f  ", float64(c.Now)/float64(time.Millisecond))
	fmt.Fprintf(&c.trace, format+"\n", args...)
}

// start begins a new lineage of an agent.
func (c *cluster) start(name string) { c.begin(name, c.nodes[name].Lineage+1) }

// begin starts the first or next life of that lineage.
func (c *cluster) begin(name string, lineage election.LineageID) {
	n := c.nodes[name]
	n.level, n.beat = c.level, c.beat
	c.Start(n.Agent, lineage)
	life := n.Past.Life - 1
	var past *election.Past
	if life > 0 {
		past = &election.Past{Lineage: election.Lineage{ID: lineage, Life: life - 1, JoinedAt: n.joined, Lease: testTiming.Lease}, LifeRecord: n.Past.LifeRecord}
	} else {
		n.joined = int64(slices.Index(c.names, name)) + int64(lineage-1)*100
	}
	voters := slices.DeleteFunc(slices.Clone(c.names), func(v string) bool { return c.nodes[v].observe })
	if n.observe {
		voters = nil
	}
	e, err := New(election.Config{Self: election.Holder{Peer: election.PeerID(name), Lineage: n.Lineage}, Name: name,
		Run: n.run(), Life: life, JoinedAt: n.joined, Quorum: c.quorum, Algorithm: c.algo, Timing: testTiming,
		Drift: election.DefaultDrift, Preempt: true, PreemptDelay: time.Second, Voters: voters}, n.Disk, past, c.Now, rand.New(rand.NewPCG(uint64(1+slices.Index(c.names, name)), uint64(n.Lineage))))
	if err != nil {
		c.t.Fatal(err)
	}
	n.elector = e
	n.Step = func(now election.Instant, in election.Input) election.Output { return c.step(name, in) }
	c.input(name, election.Campaign{Election: election.Default, Priority: n.prio})
	c.views()
	for _, other := range c.names {
		if c.nodes[other].Up && other != name {
			c.later(c.late[name+">"+other], name, c.connected(other))
			c.later(c.late[other+">"+name], other, c.connected(name))
		}
	}
}

// connected is the hello of an agent.
func (c *cluster) connected(name string) election.PeerConnected {
	n := c.nodes[name]
	return election.PeerConnected{Peer: n.Peer, Lineage: n.Lineage, Run: n.run(), Level: n.level, Heartbeat: n.beat}
}

func (n *node) run() election.RunID {
	return election.RunID((n.Past.Life-1)<<32) | election.RunID(n.Lineage)
}

func (c *cluster) kill(name string) {
	c.tracef("%s is killed", name)
	c.nodes[name].Up = false
	for _, other := range c.names {
		if c.nodes[other].Up {
			c.input(other, election.PeerLost{Peer: election.PeerID(name)})
		}
	}
	c.views()
}

func (c *cluster) views() {
	var v election.View
	for _, name := range c.names {
		if n := c.nodes[name]; n.Up {
			v.Members = append(v.Members, election.Member{Peer: election.PeerID(name), Lineage: n.Lineage, Name: name,
				JoinedAt: n.joined})
		}
	}
	slices.SortFunc(v.Members, func(a, b election.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	for _, name := range c.names {
		if c.nodes[name].Up {
			c.input(name, election.ViewChanged{View: v})
		}
	}
}

// input delivers an input at once.
func (c *cluster) input(name string, in election.Input) { c.later(0, name, in) }

func (c *cluster) later(d time.Duration, name string, in election.Input) {
	c.Input(c.nodes[name].Agent, d, in)
}

// run lets that much time pass.
func (c *cluster) run(d time.Duration) {
	for end := c.Now.Add(d); c.Happen(end); {
	}
}

func (c *cluster) step(name string, in election.Input) election.Output {
	if c.steps++; c.Now > c.since.Add(hop) {
		c.steps, c.since = 0, c.Now
	}
	if c.steps > 10_000 {
		c.t.Fatalf("%s wakes itself for ever", name)
	}
	e := c.nodes[name].elector
	out := e.Step(c.Now, in)
	if out.WakeAt <= c.Now {
		c.t.Fatalf("%s wants to wake at %d, now is %d", name, out.WakeAt, c.Now)
	}
	if problem := stale(e); problem != "" {
		c.t.Fatalf("%s after %T: %s", name, in, problem)
	}
	if problem := unrecorded(e, recorded(c.nodes[name].Past.LifeRecord, out), out); problem != "" {
		c.t.Fatalf("%s after %T: %s", name, in, problem)
	}
	return out
}

// did adds an agent's action to the trace.
func (c *cluster) did(a *virtual.Agent, action any) {
	switch x := action.(type) {
	case election.Withdrawal:
		c.tracef("%s withdraws from %s term %d: %s", a.Peer, x.Election, x.Term, x.Reason)
	case election.Envelope:
		c.traceMessage(string(a.Peer), x)
		if c.spy != nil {
			c.spy(string(a.Peer), x)
		}
	case election.PeerID:
		c.tracef("%s redials %s", a.Peer, x)
	case election.Announcement:
		word := ""
		if x.Word != (election.Word{}) {
			word = ", word " + messages.Word(x.Word)
		}
		c.tracef("%s announces %s: %s term %d (%s)%s", a.Peer, x.Event, x.Leader.Peer, x.Term, x.Reason, word)
	case election.Reply:
		n := c.nodes[string(a.Peer)]
		n.replies = append(n.replies, x)
	}
}

func (c *cluster) traceMessage(from string, s election.Envelope) {
	switch s.Message.(type) {
	case election.Heartbeat, election.HeartbeatAck, election.Inquiry, election.Report, election.RingAck, election.Candidacies, election.CandidaciesAck:
		if c.quiet {
			return
		}
	}
	c.tracef("%s -> %s  %s", from, s.To, messages.Brief(s.Message))
}

func voterNames(r election.Roster) string {
	_, text, _ := strings.Cut(messages.Roster(&r), " ")
	return text
}

// leaders returns the agents that consider themselves leaders, as "name@term".
func (c *cluster) leaders() string {
	var ls []string
	for _, name := range c.names {
		n := c.nodes[name]
		if !n.Up {
			continue
		}
		for _, s := range n.elector.Contests() {
			if _, ok := s.LeaderAt(c.Now); ok && s.State == Leading {
				ls = append(ls, fmt.Sprintf("%s@%d", name, s.Term))
			}
		}
	}
	return strings.Join(ls, " ")
}

// known returns the leader that an agent names, or "".
func (c *cluster) known(name string) string {
	for _, s := range c.nodes[name].elector.Contests() {
		if h, ok := s.LeaderAt(c.Now); ok {
			return fmt.Sprintf("%s@%d", h.Peer, s.Term)
		}
	}
	return ""
}
