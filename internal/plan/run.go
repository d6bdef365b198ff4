package plan

import (
	"math"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	// leastGossip is the least time until gossip drops an agent that is gone.
	leastGossip = 2 * time.Second
	// maxWait, in leases, bounds how long a run goes on after the faults.
	maxWait = 60
)

// verdict is the outcome of one run, for one side and one election.
type verdict struct {
	leader election.PeerID // empty: nobody leads
	term   election.Term
	after  time.Duration // from the faults until the leader led; 0: it led before
}

// outcome is the outcome of one run.
type outcome struct {
	sides   map[int]map[election.Name]verdict
	settled bool
	steps   int
}

// play runs the electors until the leaders are those of the snapshot. Then it makes the faults happen, and
// waits until nothing changes any more.
func play(s Snapshot, f Faults, groups map[election.PeerID]int, seed uint64) (outcome, error) {
	w, err := newWorld(s, seed)
	if err != nil {
		return outcome{}, err
	}
	w.campaign(true)
	w.connect()
	w.until(w.Now.Add(10*s.Timing.Lease), w.restored)
	w.campaign(false)
	// Multiples of the golden ratio spread the moment of the faults evenly between two heartbeats, however many
	// runs follow.
	phase := time.Duration(float64(s.Timing.Heartbeat) * math.Mod(float64(seed)*math.Phi, 1))
	w.run(w.Now.Add(4*s.Timing.Heartbeat + phase))
	struck := w.Now
	w.handOver(f)
	w.strike(groups, seed%2 == 0)
	settled := w.settle(struck)
	return w.judge(struck, settled), nil
}

// until runs the world, half a heartbeat at a time, until done returns true or end is reached.
func (w *world) until(end election.Instant, done func() bool) bool {
	for w.Now < end {
		if done() {
			return true
		}
		if !w.run(min(end, w.Now.Add(w.snap.Timing.Heartbeat/2))) {
			return false
		}
	}
	return done()
}

// restored reports whether every leader in the snapshot that is alive leads again.
func (w *world) restored() bool {
	for _, e := range w.snap.Elections {
		if _, leads := w.led[claim{e.Name, e.Leader}]; e.Leader != "" && w.node(e.Leader) != nil && !leads {
			return false
		}
	}
	return true
}

// handOver makes leaders hand over as the faults demand. Then it waits until all agents that have to stop are
// down.
func (w *world) handOver(f Faults) {
	for _, e := range w.snap.Elections {
		if leader, to := w.node(e.Leader), w.named(f.To); e.Name == f.Election && leader != nil && to != nil {
			w.Input(leader.Agent, 0, election.Transfer{Election: e.Name, To: to.Peer, Request: 1})
		}
	}
	var stops []*node
	for _, name := range f.Stopped {
		if n := w.named(name); n != nil {
			w.Input(n.Agent, 0, election.Shutdown{})
			stops = append(stops, n)
		}
	}
	limit := w.Now.Add(2 * w.snap.Timing.Lease)
	for len(stops) > 0 && w.Now < limit && w.run(w.Now.Add(w.snap.Timing.Heartbeat/8)) {
		stops = slices.DeleteFunc(stops, func(n *node) bool { return !n.elector.HandingOver() })
	}
}

// strike makes the faults happen. If loud is set, the connections of a dead process close at once. Otherwise
// they count as lost only after they were silent for a lease.
func (w *world) strike(groups map[election.PeerID]int, loud bool) {
	for _, n := range w.nodes {
		n.group = groups[n.Peer]
		n.Up = n.group >= 0
	}
	gossip := max(leastGossip, 2*w.snap.Timing.Lease)
	for _, n := range w.nodes {
		if !n.Up {
			continue
		}
		var members []election.Member
		for _, other := range w.nodes {
			if other.Up && other.group == n.group {
				members = append(members, other.member())
				continue
			}
			noticed := w.between(w.snap.Timing.Lease, w.snap.Timing.Lease*3/2)
			if loud && !other.Up {
				noticed = w.between(leastHop, 10*mostHop)
			}
			w.Input(n.Agent, noticed, election.PeerLost{Peer: other.Peer})
		}
		w.Input(n.Agent, gossip, viewOf(members))
	}
}

// settle waits until nothing has changed for longer than any wait in an elector. It returns false if that
// takes too long.
func (w *world) settle(struck election.Instant) bool {
	lease := w.snap.Timing.Lease
	calm := 2*lease + 4*w.snap.Timing.Heartbeat // long enough for a stand-down to expire and another attempt to follow
	begun := struck.Add(max(leastGossip, 2*lease))
	last, since := "", w.Now
	return w.until(begun.Add(maxWait*lease), func() bool {
		if now := w.describe(); now != last {
			last, since = now, w.Now
		}
		wait := calm
		if w.overtaken() {
			wait += min(w.snap.PreemptDelay, maxWait/2*lease)
		}
		return w.Now.Sub(max(since, begun)) > wait
	})
}

// describe returns a text with the leaders and terms that each agent knows, to detect a change.
func (w *world) describe() string {
	var text []byte
	for _, n := range w.nodes {
		if !n.Up {
			continue
		}
		for _, c := range n.elector.Status(w.Now).Contests {
			leader, _ := c.LeaderAt(w.Now)
			text = append(text, string(leader.Peer)+"/"...)
			text = append(text, byte(c.Term), byte(c.Term>>8), ' ')
		}
	}
	return string(text)
}

// overtaken reports whether a leader will hand over to a waiting candidate of higher priority.
func (w *world) overtaken() bool {
	if !w.snap.Preempt {
		return false
	}
	for c := range w.led {
		leader := w.node(c.peer)
		ranks := w.ranks[c.election]
		for _, n := range w.nodes {
			if n.Up && leader.Up && n.group == leader.group && ranks[n.Peer] > ranks[c.peer] {
				return true
			}
		}
	}
	return false
}

// judge returns the outcome: which agents lead on each side.
func (w *world) judge(struck election.Instant, settled bool) outcome {
	o := outcome{sides: map[int]map[election.Name]verdict{}, settled: settled, steps: w.steps}
	for c, r := range w.led {
		n := w.node(c.peer)
		if !n.Up {
			continue
		}
		if o.sides[n.group] == nil {
			o.sides[n.group] = map[election.Name]verdict{}
		}
		o.sides[n.group][c.election] = verdict{leader: c.peer, term: r.term, after: max(0, r.at.Sub(struck))}
	}
	return o
}
