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
)

const (
	hop  = time.Millisecond     // a message's way
	sync = 2 * time.Millisecond // a write's time
)

var testTiming = Timing{Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond}

// cluster is a few electors in one virtual time, with a perfect network but
// for what a test cuts, and a readable trace.
type cluster struct {
	t      *testing.T
	now    election.Instant
	nodes  map[string]*node
	names  []string
	events []event
	order  uint64
	cut    map[string]bool // "a>b": messages from a to b vanish
	trace  strings.Builder
	quiet  bool // leave heartbeats and their acks out of the trace
	spy    func(from string, e election.Envelope)
	steps  int // since that instant, a hop or less ago
	since  election.Instant
	algo   Algorithm
	quorum bool
	late   map[string]time.Duration // "a>b": how much later than usual a hears that b is connected
}

type node struct {
	name    string
	boot    election.BootID
	up      bool
	elector *Elector
	disk    election.State
	wakeAt  election.Instant
	stops   bool // gives stop receipts at once
	observe bool // not among the first voters
	prio    int
	replies []election.Reply
}

type event struct {
	at    election.Instant
	order uint64
	node  string
	boot  election.BootID
	input election.Input
}

func newCluster(t *testing.T, algo Algorithm, names ...string) *cluster {
	c := &cluster{t: t, nodes: map[string]*node{}, names: names, cut: map[string]bool{}, quiet: true, algo: algo, quorum: true}
	for _, n := range names {
		c.nodes[n] = &node{name: n, stops: true, prio: 100, disk: election.State{Peer: election.PeerID(n)}}
	}
	return c
}

func (c *cluster) tracef(format string, args ...any) {
	fmt.Fprintf(&c.trace, "%7.1f  ", float64(c.now)/float64(time.Millisecond))
	fmt.Fprintf(&c.trace, format+"\n", args...)
}

func (c *cluster) start(name string) {
	n := c.nodes[name]
	n.boot++
	n.up = true
	voters := slices.DeleteFunc(slices.Clone(c.names), func(v string) bool { return c.nodes[v].observe })
	if n.observe {
		voters = nil
	}
	e, err := New(Config{Self: election.Holder{Peer: election.PeerID(name), Boot: n.boot}, Name: name,
		JoinedAt: int64(slices.Index(c.names, name)) + int64(n.boot-1)*100, Quorum: c.quorum, Algorithm: c.algo, Timing: testTiming,
		Drift: DefaultDrift, Preempt: true, PreemptDelay: time.Second, Voters: voters}, n.disk, c.now, rand.New(rand.NewPCG(uint64(1+slices.Index(c.names, name)), uint64(n.boot))))
	if err != nil {
		c.t.Fatal(err)
	}
	n.elector = e
	n.wakeAt = c.now
	c.input(name, election.Campaign{Election: election.Default, Priority: n.prio})
	c.views()
	for _, other := range c.names {
		if o := c.nodes[other]; o.up && other != name {
			c.later(c.late[name+">"+other], name, election.PeerConnected{Peer: election.PeerID(other), Boot: o.boot})
			c.later(c.late[other+">"+name], other, election.PeerConnected{Peer: election.PeerID(name), Boot: n.boot})
		}
	}
}

func (c *cluster) kill(name string) {
	c.tracef("%s is killed", name)
	c.nodes[name].up = false
	for _, other := range c.names {
		if c.nodes[other].up {
			c.input(other, election.PeerLost{Peer: election.PeerID(name)})
		}
	}
	c.views()
}

func (c *cluster) views() {
	var v election.View
	for _, name := range c.names {
		if n := c.nodes[name]; n.up {
			v.Members = append(v.Members, election.Member{Peer: election.PeerID(name), Boot: n.boot, Name: name,
				JoinedAt:    int64(slices.Index(c.names, name)) + int64(n.boot-1)*100,
				Candidacies: []election.Candidacy{{Election: election.Default, Priority: n.prio}}})
		}
	}
	slices.SortFunc(v.Members, func(a, b election.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	for _, name := range c.names {
		if c.nodes[name].up {
			c.input(name, election.ViewChanged{View: v})
		}
	}
}

// input delivers at once.
func (c *cluster) input(name string, in election.Input) { c.later(0, name, in) }

func (c *cluster) later(d time.Duration, name string, in election.Input) {
	c.order++
	c.events = append(c.events, event{at: c.now.Add(d), order: c.order, node: name, boot: c.nodes[name].boot, input: in})
}

// run lets that much time pass.
func (c *cluster) run(d time.Duration) {
	for end := c.now.Add(d); ; {
		next := c.next()
		if next == nil || next.at > end {
			if next != nil && next.order > 0 {
				c.events = append(c.events, *next) // its time is still to come
			}
			c.now = end
			return
		}
		c.now = max(c.now, next.at)
		if n := c.nodes[next.node]; n.up && n.boot == next.boot {
			c.step(n, next.input)
		}
	}
}

// next takes the earliest event or wake-up.
func (c *cluster) next() *event {
	var best *event
	found := -1
	for i := range c.events {
		if e := &c.events[i]; best == nil || e.at < best.at || e.at == best.at && e.order < best.order {
			best, found = e, i
		}
	}
	for _, name := range c.names {
		if n := c.nodes[name]; n.up && (best == nil || n.wakeAt < best.at) {
			best, found = &event{at: n.wakeAt, node: name, boot: n.boot, input: election.Tick{}}, -1
		}
	}
	if best == nil || best.at == election.Never {
		return nil
	}
	taken := *best
	if found >= 0 {
		c.events = slices.Delete(c.events, found, found+1)
	}
	return &taken
}

func (c *cluster) step(n *node, in election.Input) {
	if c.steps++; c.now > c.since.Add(hop) {
		c.steps, c.since = 0, c.now
	}
	if c.steps > 10_000 {
		c.t.Fatalf("%s wakes itself for ever", n.name)
	}
	out := n.elector.Step(c.now, in)
	if out.WakeAt <= c.now {
		c.t.Fatalf("%s wants to wake at %d, now is %d", n.name, out.WakeAt, c.now)
	}
	if problem := stale(n.elector); problem != "" {
		c.t.Fatalf("%s after %T: %s", n.name, in, problem)
	}
	n.wakeAt = out.WakeAt
	for _, w := range out.Withdraw {
		c.tracef("%s withdraws from %s term %d: %s", n.name, w.Election, w.Term, w.Reason)
		if n.stops {
			c.input(n.name, election.Stopped{Election: w.Election, Term: w.Term})
		}
	}
	if p := out.Persist; p != nil {
		n.disk = p.State // a crash would have to undo this; these traces crash nobody while writing
		c.later(sync, n.name, election.Persisted{Write: p.Write})
	}
	for _, s := range out.Send {
		c.traceMessage(n.name, s)
		if c.spy != nil {
			c.spy(n.name, s)
		}
		if !c.cut[n.name+">"+string(s.To)] && c.nodes[string(s.To)].up {
			c.later(hop, string(s.To), election.Received{From: election.PeerID(n.name), Message: s.Message})
		}
	}
	for _, a := range out.Announce {
		c.tracef("%s announces %s: %s term %d (%s)", n.name, a.Event, a.Leader.Peer, a.Term, a.Reason)
	}
	n.replies = append(n.replies, out.Replies...)
}

func (c *cluster) traceMessage(from string, s election.Envelope) {
	var text string
	switch m := s.Message.(type) {
	case election.VoteRequest:
		text = fmt.Sprintf("Vote Request term %d", m.Term)
	case election.VoteGrant:
		text = fmt.Sprintf("Vote Grant term %d", m.Term)
	case election.VoteRefusal:
		text = fmt.Sprintf("Vote Refusal term %d, has %d", m.Term, m.Granted)
	case election.Release:
		text = fmt.Sprintf("Release term %d", m.Term)
		if m.Target != "" {
			text += " for " + string(m.Target)
		}
	case election.RosterPropose:
		text = fmt.Sprintf("Roster Propose %v %s", m.Roster.Version, voterNames(m.Roster))
	case election.RosterAccept:
		text = fmt.Sprintf("Roster Accept %v, knows term %d", m.Version, m.Highest)
	case election.Heartbeat, election.HeartbeatAck, election.Inquiry, election.Report, election.RingAck:
		if c.quiet {
			return
		}
		text = fmt.Sprintf("%T", m)
	default:
		text = strings.TrimPrefix(fmt.Sprintf("%T", m), "election.")
	}
	c.tracef("%s -> %s  %s", from, s.To, text)
}

func voterNames(r election.Roster) string {
	names := func(vs []election.Voter) string {
		var ns []string
		for _, v := range vs {
			ns = append(ns, v.Name)
		}
		return strings.Join(ns, ",")
	}
	if r.Joint() {
		mark := ""
		if r.Committed {
			mark = " (committed)"
		}
		return fmt.Sprintf("joint %s + %s%s", names(r.Voters), names(r.Next), mark)
	}
	return fmt.Sprintf("stable %s floor %d", names(r.Voters), r.Floor)
}

// leaders returns who leads by its own account, as "name@term".
func (c *cluster) leaders() string {
	var ls []string
	for _, name := range c.names {
		n := c.nodes[name]
		if !n.up {
			continue
		}
		for _, s := range n.elector.Status(c.now).Contests {
			if _, ok := s.LeaderAt(c.now); ok && s.State == Leading {
				ls = append(ls, fmt.Sprintf("%s@%d", name, s.Term))
			}
		}
	}
	return strings.Join(ls, " ")
}

// known returns whom an agent names, "" if nobody.
func (c *cluster) known(name string) string {
	for _, s := range c.nodes[name].elector.Status(c.now).Contests {
		if h, ok := s.LeaderAt(c.now); ok {
			return fmt.Sprintf("%s@%d", h.Peer, s.Term)
		}
	}
	return ""
}
