package selectiontest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/messages"
)

// Election is the election that all agents of a network take part in.
const Election = election.Default

// Every selector is made with the interval Heartbeat. Field.Patience is VoteTimeout after the end
// of the old lease, or after now if that is later.
const (
	Heartbeat   = 100 * time.Millisecond
	VoteTimeout = 2 * Heartbeat
)

// Maker makes the selector of one agent.
type Maker func(self election.PeerID) contest.Selection

type Agent struct {
	Rank     election.Rank
	Selector contest.Selection
	Dead     bool
	Unable   string // why it can't lead; empty if it can
	Leads    *election.Leadership
	Follows  election.Term // the newest term of which it was notified
	Nominee  bool          // nominated since its last Stop
	sees     map[election.PeerID]bool
	wake     election.Instant
}

type flight struct {
	from, to election.PeerID
	message  election.Message
}

// Network is a set of agents and the messages between them.
type Network struct {
	Now      election.Instant
	LeaseEnd election.Instant // when the lease of the lost leader ends
	Sent     map[string]int   // by kind of message
	Lose     func() bool      // asked at each delivery; nil: nothing is lost
	NoVoters bool             // nobody votes, so a nominee notifies all worse candidates

	tb     rapid.TB
	make   Maker
	agents []*Agent // best first
	queue  []flight // oldest first
	trace  strings.Builder
}

func New(tb rapid.TB, m Maker) *Network {
	return &Network{tb: tb, make: m, Sent: map[string]int{}}
}

// Add adds an agent. It and all others see each other. Among agents of equal priority, the one
// added earlier is senior.
func (n *Network) Add(id election.PeerID, priority int) *Agent {
	n.tb.Helper()
	a := &Agent{
		Rank:     election.Rank{Priority: priority, JoinedAt: int64(len(n.agents) + 1), Peer: id},
		Selector: n.make(id), sees: map[election.PeerID]bool{}, wake: election.Never,
	}
	for _, b := range n.agents {
		a.sees[b.Rank.Peer], b.sees[id] = true, true
	}
	n.agents = append(n.agents, a)
	slices.SortFunc(n.agents, func(a, b *Agent) int { return b.Rank.Compare(a.Rank) })
	return a
}

func (n *Network) Agents() []*Agent { return n.agents }

func (n *Network) Agent(id election.PeerID) *Agent {
	a, ok := each.First(n.agents, func(a *Agent) bool { return a.Rank.Peer == id })
	if n.tb.Helper(); !ok {
		n.tb.Fatalf("no agent %q", id)
	}
	return a
}

func (n *Network) Field(a *Agent) election.Field {
	f := election.Field{
		Self: a.Rank, Able: a.Unable == "", Leads: a.Leads,
		Patience: max(n.Now, n.LeaseEnd).Add(VoteTimeout),
	}
	for _, b := range n.agents {
		if b == a && f.Able || a.sees[b.Rank.Peer] {
			f.Ranks = append(f.Ranks, b.Rank)
		}
	}
	return f
}

// Start lets the agent begin a round.
func (n *Network) Start(id election.PeerID) {
	if a := n.Agent(id); !a.Dead {
		n.carryOut(a, a.Selector.Start(n.Now, n.Field(a)))
	}
}

// StandBack notifies the agent, without a message, that a better one has a round.
func (n *Network) StandBack(id, better election.PeerID) {
	a := n.Agent(id)
	a.Selector.StandBack(n.Now, n.Field(a), n.Agent(better).Rank)
	n.Tick(a)
}

func (n *Network) Tick(a *Agent) {
	if !a.Dead {
		n.carryOut(a, a.Selector.Tick(n.Now, n.Field(a)))
	}
}

func (n *Network) TickAll() {
	for _, a := range n.agents {
		n.Tick(a)
	}
}

// Kill stops the agent. The others do not know until Notice.
func (n *Network) Kill(id election.PeerID) {
	a := n.Agent(id)
	a.Dead, a.wake = true, election.Never
}

// Notice takes the agent out of all fields.
func (n *Network) Notice(gone election.PeerID) {
	for _, a := range n.agents {
		delete(a.sees, gone)
	}
	n.TickAll()
}

// Confirm makes the agent the leader of that term, as if the voters had confirmed it.
func (n *Network) Confirm(id election.PeerID, term election.Term) {
	a := n.Agent(id)
	l := election.Leadership{Leader: election.Holder{Peer: id, Lineage: 1}, Term: term}
	sends := a.Selector.Confirmed(n.Field(a), l)
	a.Leads, a.Follows, a.Nominee = &l, term, false
	a.Selector.Stop()
	n.carryOut(a, election.Verdict{Send: sends, WakeAt: election.Never})
}

// Send puts a message under way. Any agent or stranger can be its sender.
func (n *Network) Send(from, to election.PeerID, m election.Message) {
	kind, _, _ := strings.Cut(messages.Brief(m), " ")
	n.Sent[kind]++
	n.queue = append(n.queue, flight{from: from, to: to, message: m})
}

func (n *Network) carryOut(a *Agent, v election.Verdict) {
	for _, e := range v.Send {
		n.Send(a.Rank.Peer, e.To, e.Message)
	}
	a.wake = v.WakeAt
	if !v.Nominee {
		return
	}
	if a.Nominee {
		n.tb.Fatalf("%s is nominated twice in one round", a.Rank.Peer)
	}
	if a.Unable != "" {
		n.tb.Fatalf("%s is nominated but can't lead", a.Rank.Peer)
	}
	a.Nominee = true
	n.logf("%s is nominee\n", a.Rank.Peer)
	for _, e := range a.Selector.Nominated(n.Field(a), func(election.PeerID) bool { return !n.NoVoters }) {
		n.Send(a.Rank.Peer, e.To, e.Message)
	}
}

func (n *Network) logf(format string, args ...any) { fmt.Fprintf(&n.trace, format, args...) }

// Trace returns what happened since it was last called.
func (n *Network) Trace() string {
	defer n.trace.Reset()
	return n.trace.String()
}
