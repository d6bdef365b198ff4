package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/virtual"
)

const (
	// dawn is when virtual time starts. It is not 0, since 0 means "never" in some places.
	dawn = election.Instant(time.Hour)
	boot = election.LineageID(1)

	leastHop, mostHop   = 100 * time.Microsecond, 500 * time.Microsecond // how long a message takes if no round trip is known
	leastSync, mostSync = time.Millisecond, 10 * time.Millisecond        // how long a write takes
	// maxSteps bounds one run, so that every question gets an answer.
	maxSteps = 200_000
)

// world is one run: all electors, in one virtual time.
type world struct {
	virtual.Cluster
	snap  Snapshot
	rng   *rand.Rand
	nodes []*node
	ranks map[election.Name]map[election.PeerID]int // the candidates' priorities in each election
	steps int
	led   map[claim]reign // who leads, as reported by the leader itself
}

// node is one agent that votes or is a candidate.
type node struct {
	*virtual.Agent
	info    Agent
	elector *elector.Elector
	group   int
}

// claim is an election and its leader.
type claim struct {
	election election.Name
	peer     election.PeerID
}

// reign is the term of a leader, and since when it leads.
type reign struct {
	term election.Term
	at   election.Instant
}

// newWorld starts an elector for each agent that votes or is a candidate. The voters have the term before the
// present one on record, as released, so that the present leader can take the present term again.
func newWorld(s Snapshot, seed uint64) (*world, error) {
	w := &world{snap: s, rng: rand.New(rand.NewPCG(seed, 0xd07e)), led: map[claim]reign{}, ranks: map[election.Name]map[election.PeerID]int{}}
	candidates := map[election.PeerID]bool{}
	for _, e := range s.Elections {
		w.ranks[e.Name] = s.ranked(e)
		for p := range w.ranks[e.Name] {
			candidates[p] = true
		}
	}
	w.Now = dawn
	w.Cut = func(from, to *virtual.Agent) bool {
		return !from.Up || w.nodes[from.Index].group != w.nodes[to.Index].group
	}
	w.Delay = w.hop
	w.Write = func(*virtual.Agent) time.Duration { return w.between(leastSync, mostSync) }
	w.Watch = w.watch
	for _, info := range s.Agents {
		if !candidates[info.Peer] && !s.Roster.Has(info.Peer) {
			continue
		}
		a := &virtual.Agent{Holder: election.Holder{Peer: info.Peer, Lineage: boot}, Up: true, Disk: w.record(info.Peer)}
		e, err := elector.New(election.Config{
			Self: a.Holder, Name: info.Name, JoinedAt: info.JoinedAt,
			Quorum: s.Quorum, Algorithm: s.Algorithm, Timing: s.Timing, Drift: election.DefaultDrift,
			Preempt: s.Preempt, PreemptDelay: s.PreemptDelay,
		}, a.Disk, nil, w.Now, rand.New(rand.NewPCG(seed, uint64(len(w.nodes)))))
		if err != nil {
			return nil, fmt.Errorf("start the elector of %s: %w", info.Name, err)
		}
		a.Step = e.Step
		w.Add(a)
		w.nodes = append(w.nodes, &node{Agent: a, info: info, elector: e})
	}
	return w, nil
}

// connect must follow the first candidacies: agents report their candidacies when they connect.
func (w *world) connect() {
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a != b {
				w.Input(a.Agent, 0, election.PeerConnected{Peer: b.Peer, Lineage: boot})
			}
		}
	}
}

// node returns the node with that peer ID, nil if there is none.
func (w *world) node(p election.PeerID) *node {
	if a := w.Find(p); a != nil {
		return w.nodes[a.Index]
	}
	return nil
}

// named returns the node with that name, nil if there is none.
func (w *world) named(name string) *node {
	n, _ := each.First(w.nodes, func(n *node) bool { return n.info.Name == name })
	return n
}

// record returns the durable state with which the agent starts.
func (w *world) record(p election.PeerID) election.State {
	s := election.State{Peer: p, Roster: w.snap.Roster, Grants: map[election.Name]election.Grant{}, Seen: map[election.Name]election.Term{}}
	for _, e := range w.snap.Elections {
		before := e.Term
		if _, alive := w.snap.agent(e.Leader); alive && before > 0 {
			before-- // so that the leader can take the present term
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

// campaign makes the snapshot's candidates campaign. With leadersOnly, an election whose leader is alive gets
// only that candidate.
func (w *world) campaign(leadersOnly bool) {
	var members []election.Member
	for _, n := range w.nodes {
		for _, e := range w.snap.Elections {
			priority, is := w.ranks[e.Name][n.Peer]
			if is && (!leadersOnly || e.Leader == n.Peer || w.node(e.Leader) == nil) {
				w.Input(n.Agent, 0, election.Campaign{Election: e.Name, Priority: priority})
			}
		}
		members = append(members, n.member())
	}
	for _, n := range w.nodes {
		w.Input(n.Agent, 0, viewOf(members))
	}
}

func (n *node) member() election.Member {
	return election.Member{Peer: n.Peer, Lineage: boot, Name: n.info.Name, JoinedAt: n.info.JoinedAt}
}

// viewOf returns a view of these members, sorted.
func viewOf(members []election.Member) election.ViewChanged {
	slices.SortFunc(members, func(a, b election.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	return election.ViewChanged{View: election.View{Members: members}}
}

// run moves time on to the instant. It returns false if the run has taken more than maxSteps.
func (w *world) run(until election.Instant) bool {
	for w.Happen(until) {
		if w.steps++; w.steps > maxSteps {
			return false
		}
	}
	return true
}

// watch records which agents lead, by their own announcements.
func (w *world) watch(a *virtual.Agent, action any) {
	switch x := action.(type) {
	case election.Withdrawal:
		delete(w.led, claim{x.Election, a.Peer})
	case election.Announcement:
		if x.Event == election.Leading || x.Event == election.NewTerm && x.Leader.Peer == a.Peer {
			w.led[claim{x.Election, a.Peer}] = reign{term: x.Term, at: w.Now}
		}
	}
}

// hop returns how long a message takes.
func (w *world) hop(from, to *virtual.Agent) time.Duration {
	if way := (w.nodes[from.Index].info.RTT + w.nodes[to.Index].info.RTT) / 4; way > 0 {
		return w.between(way, way*3/2)
	}
	return w.between(leastHop, mostHop)
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)+1))
}
