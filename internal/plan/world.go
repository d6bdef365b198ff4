package plan

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

const (
	// dawn is when virtual time begins: not at 0, which stands for "never" in
	// some places.
	dawn = election.Instant(time.Hour)
	boot = election.BootID(1)

	leastHop, mostHop   = 100 * time.Microsecond, 500 * time.Microsecond // a message's way, where no round trip is known
	leastSync, mostSync = time.Millisecond, 10 * time.Millisecond        // a write's time
	// maxSteps bounds one run: a question must be answered.
	maxSteps = 200_000
)

// world is one run: the electors in one virtual time.
type world struct {
	snap   Snapshot
	rng    *rand.Rand
	now    election.Instant
	nodes  []*node
	byPeer map[election.PeerID]*node
	queue  queue
	order  uint64
	steps  int
	led    map[claim]reign // who leads, by its own account
}

// node is one agent that votes or stands.
type node struct {
	Agent
	elector *elector.Elector
	up      bool
	group   int
	wakeAt  election.Instant
	stands  []election.Candidacy                 // sorted by election
	arrival map[election.PeerID]election.Instant // of the last message to each: links keep the order
}

// claim is an election and who leads it.
type claim struct {
	election election.Name
	peer     election.PeerID
}

// reign is since when, and in which term.
type reign struct {
	term election.Term
	at   election.Instant
}

type event struct {
	at    election.Instant
	order uint64
	to    *node
	from  *node // of a message; nil otherwise
	input election.Input
}

// queue is a heap of what is to come, the earliest first.
type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].order, q[j].order)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// newWorld starts an elector for each agent that votes or stands. The voters
// have on record, released, the term before the one that is led now: so whoever
// leads now is the first to take the next one.
func newWorld(s Snapshot, seed uint64) (*world, error) {
	w := &world{snap: s, rng: rand.New(rand.NewPCG(seed, 0xd07e)), now: dawn,
		byPeer: map[election.PeerID]*node{}, led: map[claim]reign{}}
	for _, a := range s.Agents {
		n := &node{Agent: a, up: true, stands: w.candidacies(a.Peer), arrival: map[election.PeerID]election.Instant{}}
		if len(n.stands) == 0 && !s.Roster.Has(a.Peer) {
			continue
		}
		e, err := elector.New(elector.Config{
			Self: election.Holder{Peer: a.Peer, Boot: boot}, Name: a.Name, JoinedAt: a.JoinedAt,
			Quorum: s.Quorum, Algorithm: s.Algorithm, Timing: s.Timing, Drift: elector.DefaultDrift,
			Preempt: s.Preempt, PreemptDelay: s.PreemptDelay,
		}, w.record(a.Peer), w.now, rand.New(rand.NewPCG(seed, uint64(len(w.nodes)))))
		if err != nil {
			return nil, fmt.Errorf("start the elector of %s: %w", a.Name, err)
		}
		n.elector = e
		w.nodes = append(w.nodes, n)
		w.byPeer[a.Peer] = n
	}
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a != b {
				w.give(a, 0, election.PeerConnected{Peer: b.Peer, Boot: boot})
			}
		}
	}
	return w, nil
}

// candidacies are where the agent stands now.
func (w *world) candidacies(p election.PeerID) []election.Candidacy {
	var all []election.Candidacy
	for _, e := range w.snap.Elections {
		if priority, ok := w.snap.ranked(e)[p]; ok {
			all = append(all, election.Candidacy{Election: e.Name, Priority: priority})
		}
	}
	slices.SortFunc(all, func(a, b election.Candidacy) int { return cmp.Compare(a.Election, b.Election) })
	return all
}

// record is the durable state the agent is started with.
func (w *world) record(p election.PeerID) election.State {
	s := election.State{Peer: p, Roster: w.snap.Roster, Grants: map[election.Name]election.Grant{}, Seen: map[election.Name]election.Term{}}
	for _, e := range w.snap.Elections {
		before := e.Term
		if _, alive := w.snap.agent(e.Leader); alive && before > 0 {
			before-- // for its leader to take
		}
		if before == 0 {
			continue
		}
		s.Seen[e.Name] = before
		if w.snap.Quorum {
			s.Grants[e.Name] = election.Grant{Term: before, Holder: election.Holder{Peer: "before"}, Lease: w.snap.Timing.Lease, Released: true}
		}
	}
	return s
}

// campaign has agents stand: those that lead now alone, or all that do.
func (w *world) campaign(leadersOnly bool) {
	leads := map[election.Name]election.PeerID{}
	for _, e := range w.snap.Elections {
		leads[e.Name] = e.Leader
	}
	var members []election.Member
	for _, n := range w.nodes {
		m := election.Member{Peer: n.Peer, Boot: boot, Name: n.Name, JoinedAt: n.JoinedAt}
		for _, c := range n.stands {
			if !leadersOnly || leads[c.Election] == n.Peer {
				m.Candidacies = append(m.Candidacies, c)
				w.give(n, 0, election.Campaign{Election: c.Election, Priority: c.Priority})
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b election.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	for _, n := range w.nodes {
		w.give(n, 0, election.ViewChanged{View: election.View{Members: members}})
	}
}

func (w *world) give(to *node, after time.Duration, in election.Input) {
	w.push(event{at: w.now.Add(after), to: to, input: in})
}

func (w *world) push(e event) {
	w.order++
	e.order = w.order
	heap.Push(&w.queue, e)
}

// run lets time pass until the instant. It returns false once the run has had
// its share of steps.
func (w *world) run(until election.Instant) bool {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		_, tick := e.input.(election.Tick)
		switch {
		case !e.to.up, tick && e.at != e.to.wakeAt:
			continue
		case e.from != nil && (!e.from.up || e.from.group != e.to.group):
			continue // it was on its way when the link went
		}
		w.now = max(w.now, e.at)
		w.step(e.to, e.input)
		if w.steps++; w.steps > maxSteps {
			return false
		}
	}
	w.now = until
	return true
}

func (w *world) step(n *node, in election.Input) {
	out := n.elector.Step(w.now, in)
	if n.wakeAt = out.WakeAt; n.wakeAt != election.Never {
		w.push(event{at: n.wakeAt, to: n, input: election.Tick{}})
	}
	for _, s := range out.Withdraw {
		delete(w.led, claim{s.Election, n.Peer})
		w.give(n, 0, election.Stopped{Election: s.Election, Term: s.Term})
	}
	if out.Persist != nil {
		w.give(n, w.between(leastSync, mostSync), election.Persisted{Write: out.Persist.Write})
	}
	for _, s := range out.Send {
		to := w.byPeer[s.To]
		if to == nil || !to.up || to.group != n.group {
			continue
		}
		at := max(w.now.Add(w.hop(n, to)), n.arrival[s.To])
		n.arrival[s.To] = at
		w.push(event{at: at, to: to, from: n, input: election.Received{From: n.Peer, Message: s.Message}})
	}
	for _, a := range out.Announce {
		if a.Event == election.Leading || a.Event == election.NewTerm && a.Leader.Peer == n.Peer {
			w.led[claim{a.Election, n.Peer}] = reign{term: a.Term, at: w.now}
		}
	}
}

// hop is how long a message takes.
func (w *world) hop(a, b *node) time.Duration {
	if way := (a.RTT + b.RTT) / 4; way > 0 {
		return w.between(way, way*3/2)
	}
	return w.between(leastHop, mostHop)
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)+1))
}
