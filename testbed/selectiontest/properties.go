package selectiontest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// maxAgents keeps drawn networks small enough to be searched and read.
const maxAgents = 9

// drawNetwork draws agents whose peer IDs and ranks are in random order. There are few
// priorities, so that seniority and peer ID decide too.
func drawNetwork(t *rapid.T, m Maker) *Network {
	n := New(t, m)
	size := rapid.IntRange(1, maxAgents).Draw(t, "agents")
	ids := make([]election.PeerID, size)
	for i := range ids {
		ids[i] = election.PeerID(rune('a' + i))
	}
	for _, id := range rapid.Permutation(ids).Draw(t, "order") {
		n.Add(id, rapid.IntRange(1, 4).Draw(t, "priority"))
	}
	return n
}

func (n *Network) drawAgent(t *rapid.T, label string) *Agent {
	return n.agents[rapid.IntRange(0, len(n.agents)-1).Draw(t, label)]
}

// BestAble returns the best agent that could lead, nil if none can.
func (n *Network) BestAble() *Agent {
	a, _ := each.First(n.agents, func(a *Agent) bool { return !a.Dead && a.Unable == "" })
	return a
}

func (n *Network) total() int {
	sum := 0
	for _, count := range n.Sent {
		sum += count
	}
	return sum
}

// SelectsBest checks a network that loses no message and whose field does not change. Messages
// arrive in any order that keeps the order on each link. No matter which agents start, only the
// best agent that can lead becomes the nominee, with at most limit(n) messages. The announcement
// reaches every agent and ends every round.
func SelectsBest(m Maker, limit func(agents int) int) func(*rapid.T) {
	return func(t *rapid.T) {
		n := drawNetwork(t, m)
		for _, a := range n.agents {
			if rapid.IntRange(0, 3).Draw(t, "unable") == 0 {
				a.Unable = "draining"
			}
		}
		n.startSome(t)
		n.Settle(n.Now.Add(time.Minute), 1+limit(len(n.agents)))
		var want []election.PeerID
		if best := n.BestAble(); best != nil && n.total()+len(n.Nominees()) > 0 {
			want = append(want, best.Rank.Peer)
		}
		if got := n.Nominees(); !slices.Equal(got, want) {
			t.Fatalf("nominees are %v, want %v:\n%s", got, want, n.Trace())
		}
		if len(want) == 0 {
			return
		}
		n.Confirm(want[0], 7)
		n.DeliverAll(1 + limit(len(n.agents)))
		if n.total() > limit(len(n.agents)) {
			t.Fatalf("sent %v, more than %d", n.Sent, limit(len(n.agents)))
		}
		for _, a := range n.agents {
			if a.Follows != 7 || a.Selector.Active() {
				t.Fatalf("%s is in term %d, active %t:\n%s", a.Rank.Peer, a.Follows, a.Selector.Active(), n.Trace())
			}
		}
	}
}

// startSome starts some agents and delivers messages, in random order. Then it delivers the rest.
func (n *Network) startSome(t *rapid.T) {
	starts := rapid.IntRange(1, 2*len(n.agents)).Draw(t, "starts")
	for starts > 0 || n.InFlight() > 0 {
		if starts > 0 && (n.InFlight() == 0 || rapid.Bool().Draw(t, "start")) {
			n.Start(n.drawAgent(t, "starter").Rank.Peer)
			starts--
			continue
		}
		first := n.DeliverFirst()
		n.DeliverAt(first[rapid.IntRange(0, len(first)-1).Draw(t, "deliver")])
	}
}

// Recovers first lets messages be lost and repeated, agents die or change whether they can lead,
// and attempts fail. Then messages arrive again. If any agent can lead, Recovers checks that one is nominated
// within the bound, and with at most limit(n) messages.
func Recovers(m Maker, bound func(agents int) time.Duration, limit func(agents int) int) func(*rapid.T) {
	return func(t *rapid.T) {
		n := drawNetwork(t, m)
		n.LeaseEnd = election.Instant(rapid.IntRange(0, 300).Draw(t, "lease ms")) * election.Instant(time.Millisecond)
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			n.misfortune(t)
		}
		n.heal()
		if n.BestAble() == nil {
			return
		}
		healed, sent := n.Now, n.total()
		n.runElectors(healed.Add(bound(len(n.agents))))
		if len(n.Nominees()) == 0 {
			t.Fatalf("nobody is nominated %s after the loss ended:\n%s", n.Now.Sub(healed), n.Trace())
		}
		if extra := n.total() - sent; extra > limit(len(n.agents)) {
			t.Fatalf("%d messages after the loss ended, more than %d:\n%s", extra, limit(len(n.agents)), n.Trace())
		}
	}
}

func (n *Network) misfortune(t *rapid.T) {
	a := n.drawAgent(t, "agent")
	some := func() int { return rapid.IntRange(0, n.InFlight()-1).Draw(t, "message") }
	what := rapid.IntRange(0, 11).Draw(t, "what")
	switch {
	case what < 2:
		n.Start(a.Rank.Peer)
	case what == 2:
		n.AdvanceTo(n.Now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "ms")) * time.Millisecond))
	case what == 3 && rapid.Bool().Draw(t, "really"):
		n.Kill(a.Rank.Peer)
	case what == 4 && a.Dead:
		n.Notice(a.Rank.Peer)
	case what == 5:
		a.Unable = rapid.SampledFrom([]string{"", "draining"}).Draw(t, "unable")
		n.Tick(a)
	case what == 6 && a.Nominee:
		n.Fail(a)
	case what == 7 && !a.Dead:
		n.StandBack(a.Rank.Peer, n.drawAgent(t, "better").Rank.Peer)
	case n.InFlight() == 0:
		n.Start(a.Rank.Peer)
	case what == 8:
		n.Discard(some())
	case what == 9:
		n.Repeat(some())
	default:
		n.DeliverAt(some())
	}
}

// Fail ends the attempt of a nominee, as if the voters had not confirmed it.
func (n *Network) Fail(a *Agent) {
	n.logf("%s is not confirmed\n", a.Rank.Peer)
	a.Nominee = false
	a.Selector.Stop()
	n.Tick(a)
}

// heal ends the attempts of all nominees, and lets every agent notice which agents are dead.
func (n *Network) heal() {
	n.logf("healed\n")
	for _, a := range n.agents {
		if a.Nominee && !a.Dead {
			n.Fail(a)
		}
	}
	for _, a := range n.agents {
		if a.Dead {
			n.Notice(a.Rank.Peer)
		}
	}
}

// runElectors plays the electors of a cluster without a leader. An agent that can lead starts a round if it
// has none under way. The i-th best agent of the network waits i quarters of a heartbeat. runElectors ends with
// the first nominee, or at the given time.
func (n *Network) runElectors(until election.Instant) {
	begun := n.Now
	for turns := 0; n.Now < until; turns++ {
		if turns == stormLimit {
			n.tb.Fatalf("time does not advance at %s:\n%s", n.Now.Sub(0), n.Trace())
		}
		n.DeliverAll(stormLimit)
		next := n.NextWake()
		for i, a := range n.agents {
			if a.Dead || a.Unable != "" || a.Selector.Active() {
				continue
			}
			due := begun.Add(time.Duration(i) * Heartbeat / 4)
			if due <= n.Now {
				n.Start(a.Rank.Peer)
			}
			next = min(next, max(due, n.Now))
		}
		if len(n.Nominees()) > 0 {
			return
		}
		if n.InFlight() == 0 {
			n.AdvanceTo(min(next, until))
		}
	}
}

// String describes the agent, for a failed test.
func (a *Agent) String() string {
	return fmt.Sprintf("%s(priority %d, dead %t, unable %q)", a.Rank.Peer, a.Rank.Priority, a.Dead, a.Unable)
}

// Fleet returns a network of size agents. rank gives the priority of the agent with the i-th
// peer ID, counted from 0.
func Fleet(tb rapid.TB, m Maker, size int, rank func(i int) int) *Network {
	tb.Helper()
	n := New(tb, m)
	for i := range size {
		n.Add(election.PeerID(fmt.Sprintf("p%03d", i)), rank(i))
	}
	return n
}

// Elect starts the given agents at the same moment, delivers everything and confirms the
// nominee. It fails the test unless the best agent is the only nominee.
func (n *Network) Elect(starters ...election.PeerID) {
	n.tb.Helper()
	for _, s := range starters {
		n.Start(s)
	}
	n.DeliverAll(stormLimit)
	best := n.agents[0].Rank.Peer
	if got := n.Nominees(); len(got) != 1 || got[0] != best {
		n.tb.Fatalf("nominees are %v, want %s", got, best)
	}
	n.Confirm(best, 1)
	n.DeliverAll(stormLimit)
}
