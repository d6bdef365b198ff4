package membership

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxAsking bounds the questions under way, askTimes the questions to one node in a row.
	maxAsking = 16
	askTimes  = 5
	// patientFor is how long a node that answers nothing must be listed as live until it
	// counts as there: others hear it. If it were a recording, they would have missed it.
	patientFor = 2 * time.Minute
)

// asker finds out whether nodes that are listed as live are there. It asks each by its
// gossip name; a node that answers has that name, and has the cluster key now. The asker
// belongs to the loop; each question runs in a separate goroutine.
type asker struct {
	ping     func(node string, at netip.AddrPort) error
	answered chan answer
	stop     <-chan struct{}
	running  *sync.WaitGroup

	nodes map[string]*question
	busy  int
}

type answer struct {
	node  string
	there bool
}

type question struct {
	since    time.Time
	busy     bool
	answered bool
}

func newAsker(m *Membership) *asker {
	return &asker{
		ping: func(node string, at netip.AddrPort) error {
			_, err := m.list.Ping(node, net.UDPAddrFromAddrPort(at))
			return err
		},
		answered: make(chan answer), stop: m.ctx.Done(), running: &m.running, nodes: map[string]*question{},
	}
}

// answers reports whether the node has answered, or has been live for so long
// that it must be there.
func (a *asker) answers(node string) bool {
	q := a.nodes[node]
	return q != nil && q.answered
}

// ask asks the doubted members, and forgets the nodes that are no longer live: a node that
// comes back is asked again.
func (a *asker) ask(doubted []Member, live map[string]bool, now time.Time) {
	maps.DeleteFunc(a.nodes, func(node string, q *question) bool { return !live[node] && !q.busy })
	for _, m := range doubted {
		node := gossipName(m.Member)
		q := a.nodes[node]
		if q == nil {
			q = &question{since: now}
			a.nodes[node] = q
		}
		q.answered = q.answered || now.Sub(q.since) >= patientFor
		if q.busy || q.answered || a.busy >= maxAsking {
			continue
		}
		q.busy = true
		a.busy++
		a.running.Go(func() {
			outcome := answer{node: node}
			for i := 0; i < askTimes && !outcome.there; i++ {
				outcome.there = a.ping(node, m.GossipAddr) == nil
			}
			select {
			case a.answered <- outcome:
			case <-a.stop:
			}
		})
	}
}

// finish takes an outcome, and reports whether the node is there.
func (a *asker) finish(outcome answer) bool {
	a.busy--
	q := a.nodes[outcome.node]
	q.busy, q.answered = false, outcome.there
	return outcome.there
}
