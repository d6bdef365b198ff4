package selectiontest

import (
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

func (n *Network) InFlight() int { return len(n.queue) }

func (n *Network) Deliver() { n.DeliverAt(0) }

func (n *Network) DeliverAt(i int) {
	m := n.queue[i]
	to := n.Agent(m.to)
	if to.Dead || n.Lose != nil && n.Lose() {
		n.Discard(i)
		return
	}
	n.queue = slices.Delete(n.queue, i, i+1)
	n.logf("  %s -> %s %s\n", m.from, m.to, messages.Brief(m.message))
	n.carryOut(to, to.Selector.Receive(n.Now, n.Field(to), m.from, m.message))
	if term, ok := announced(m.message); ok && term > to.Follows {
		to.Follows, to.Nominee = term, false
		to.Selector.Stop()
		n.Tick(to)
		n.logf("%s follows in term %d\n", m.to, term)
	}
}

// DeliverFirst returns the index of the oldest message on each link. A caller that always chooses
// among these keeps the order on each link.
func (n *Network) DeliverFirst() []int {
	type link struct{ from, to election.PeerID }
	seen := map[link]bool{}
	var first []int
	for i, m := range n.queue {
		if l := (link{m.from, m.to}); !seen[l] {
			seen[l] = true
			first = append(first, i)
		}
	}
	return first
}

// Repeat puts a copy of the i-th oldest message under way.
func (n *Network) Repeat(i int) { n.queue = append(n.queue, n.queue[i]) }

func (n *Network) Discard(i int) {
	m := n.queue[i]
	n.queue = slices.Delete(n.queue, i, i+1)
	n.logf("  %s -> %s %s (lost)\n", m.from, m.to, messages.Brief(m.message))
}

// DeliverAll delivers until nothing is under way. If it takes more than limit messages, that
// is a storm and fails the test.
func (n *Network) DeliverAll(limit int) {
	n.tb.Helper()
	for ; n.InFlight() > 0; limit-- {
		if limit == 0 {
			n.tb.Fatalf("message storm: %d still under way, sent %v", n.InFlight(), n.Sent)
		}
		n.Deliver()
	}
}

// NextWake is when the first agent wants to be woken.
func (n *Network) NextWake() election.Instant {
	next := election.Never
	for _, a := range n.agents {
		next = min(next, a.wake)
	}
	return next
}

// AdvanceTo moves the time and wakes every agent that is due, best first. The test fails if an
// agent then wants to be woken again at once, because that would keep its caller busy.
func (n *Network) AdvanceTo(at election.Instant) {
	n.tb.Helper()
	n.Now = max(n.Now, at)
	n.logf("at %s\n", n.Now.Sub(0))
	for _, a := range n.agents {
		if a.wake <= n.Now {
			n.Tick(a)
		}
		if a.wake <= n.Now {
			n.tb.Fatalf("%s was woken at %s and wants it at %s again", a, n.Now.Sub(0), a.wake.Sub(0))
		}
	}
}

// Settle delivers everything and lets time pass. It ends when there is a nominee, or when no agent wants to
// be woken before the given time. Then no message is under way.
func (n *Network) Settle(until election.Instant, limit int) {
	n.tb.Helper()
	for {
		n.DeliverAll(limit)
		next := n.NextWake()
		if len(n.Nominees()) > 0 || next == election.Never || next > until {
			return
		}
		n.AdvanceTo(next)
	}
}

// Nominees returns the live nominees, best first.
func (n *Network) Nominees() []election.PeerID {
	var nominees []election.PeerID
	for _, a := range n.agents {
		if a.Nominee && !a.Dead {
			nominees = append(nominees, a.Rank.Peer)
		}
	}
	return nominees
}

func announced(m election.Message) (election.Term, bool) {
	switch m := m.(type) {
	case election.BullyCoordinator:
		return m.Term, true
	case election.RingElected:
		return m.Term, true
	}
	return 0, false
}
