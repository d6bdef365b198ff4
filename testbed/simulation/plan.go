package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

// plan is what one seed decides before the run begins.
type plan struct {
	voters     int
	observers  int
	elections  []election.Name
	quorum     bool
	varied     bool // an agent's settings change from life to life
	prepared   bool // the roster exists from the start; if not, the voters form it
	lives      bool // agents keep a record for their next life
	companions bool // hosts have a companion
	needed     bool // a host is a candidate only while its companion for the election is connected
	words      bool // programs of leaders write words
	revised    bool // the roster's settings and rights change
	early      bool // disks are lost while the voters form the roster
	algorithm  string
	settings

	loss, repeat, reorder float64 // shares of messages; a burst may make them larger

	drift     int64         // how far clock rates really stray, parts per million
	delay     time.Duration // mean delay of a message
	late      time.Duration // mean delay of a timer
	write     time.Duration // mean duration of a write
	heeds     float64       // share of the requests to stop that a program obeys
	stale     float64       // share of an old connection's messages that still arrive
	chaos     time.Duration
	calm      time.Duration   // the time before the first fault
	intervals []time.Duration // mean time between faults, by kind; 0: no such faults
}

func (p plan) String() string {
	how := "genesis"
	if p.prepared {
		how = "prepared"
	}
	return fmt.Sprintf("%d voters, %d observers, elections %v, quorum=%v, %s roster, %s, %v/%v, preempt=%v after %v, chaos %v, delay %v",
		p.voters, p.observers, p.elections, p.quorum, how, p.algorithm, p.timing.Heartbeat, p.timing.Lease,
		p.preempt, p.preemptDelay, p.chaos, p.delay)
}

// drawPlan draws a plan. drift is how far clocks stray, in parts per million.
func drawPlan(rng *rand.Rand, drift int64) plan {
	p := plan{
		voters:    pick(rng, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 1, 2, 4, 6, 7, 8, 9),
		observers: pick(rng, 0, 0, 1, 1, 2, 3),
		elections: []election.Name{election.Default},
		quorum:    rng.IntN(8) != 0,
		prepared:  rng.IntN(3) == 0,
		algorithm: pick(rng, election.Bully, election.Ring),
		settings: settings{
			timing: pick(rng, election.Timing{Heartbeat: 50 * time.Millisecond, Lease: 300 * time.Millisecond},
				election.Timing{Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond},
				election.Timing{Heartbeat: 100 * time.Millisecond, Lease: 400 * time.Millisecond}),
			preempt: rng.IntN(3) != 0,
		},
		heeds: pick(rng, 0, 0.5, 0.9),
		stale: pick(rng, 0, 0.3, 0.9),
		drift: drift,
	}
	for i := range pick(rng, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, maxElections-1) {
		p.elections = append(p.elections, election.Name(fmt.Sprintf("job%d", i+1)))
	}
	fewer := p.quorum && rng.IntN(5) == 0 // fewer voters, more observers: the roster can change
	if fewer {
		p.voters, p.observers = 1+rng.IntN(3), 2+rng.IntN(2)
	}
	hb := p.timing.Heartbeat
	p.timing.DiskPatience = pick(rng, 0, p.timing.Lease, 3*p.timing.Lease)
	p.preemptDelay = pick(rng, 0, hb, 5*hb)
	p.loss = pick(rng, 0, 0, 0, 0.002, 0.02)
	p.repeat = pick(rng, 0, 0, 0, 0.01, 0.1)
	p.reorder = pick(rng, 0, 0, 0, 0.01, 0.1)
	p.delay = pick(rng, hb/500, hb/100, hb/20, hb/8)
	p.late = pick(rng, 0, hb/200, hb/20)
	p.write = pick(rng, hb/200, hb/50, hb/10)
	p.chaos = time.Duration(10+rng.IntN(50)) * p.timing.Lease
	p.calm = time.Duration(rng.IntN(4)) * p.timing.Lease
	p.varied = rng.IntN(4) == 0 || fewer && rng.IntN(2) == 0
	p.drawFaults(rng, fewer)
	return p
}

func (p *plan) drawFaults(rng *rand.Rand, fewer bool) {
	changes := pick(rng, nothing, nothing, nothing, rosters, identities, identities, rosters|identities, rosters|identities)
	if fewer {
		changes |= rosters
	} else if !p.quorum {
		changes &^= rosters
	}
	if changes == nothing && p.quorum && rng.IntN(8) == 0 {
		changes = copies
	}
	p.early = changes&identities != 0 && p.quorum && !p.prepared && rng.IntN(2) == 0
	for _, f := range faultKinds() {
		interval := pick[time.Duration](rng, 1, 2, 4, 8, 16) * p.timing.Lease
		drawn := rng.IntN(2) == 0
		switch {
		case f.changes != nothing && f.changes&changes == 0:
			interval = 0
		case f.changes == rosters && fewer:
			interval = 3 * p.timing.Lease
		case f.name == leaseFault && fewer && p.varied:
			interval = 8 * p.timing.Lease
		case f.changes == nothing && !drawn:
			interval = 0
		}
		p.intervals = append(p.intervals, interval)
	}
}

// changes reports whether this seed changes the set of voters in the given way.
func (w *world) changes(how change) bool {
	for i, f := range faultKinds() {
		if f.changes&how != 0 && w.plan.intervals[i] > 0 {
			return true
		}
	}
	return false
}

const maxElections = 6

func chance(r *rand.Rand, p float64) bool { return p > 0 && r.Float64() < p }

func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

// around draws an exponential duration with this mean, cut at eight times the mean.
func around(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(rng.ExpFloat64(), 8) * float64(mean))
}

// fault is a kind of fault. Each seed draws which kinds happen, and how often.
type fault struct {
	name       string
	changes    change
	lives      bool // only in worlds where agents keep a record
	companions bool // only in worlds with companions
	strike     func(*world, *rand.Rand)
}

// change is a set of ways in which a kind of fault, or a seed, changes the voters.
type change uint8

const (
	rosters    change = 1 << iota // an operator changes the voters at will
	identities                    // disks are lost, and with them voters
	copies                        // older copies of data directories are restored
	nothing    change = 0
)

func faultKinds() []fault {
	return []fault{
		{name: "join", strike: nil}, // an agent's first start, at a moment before the faults end
		{name: "crash", strike: (*world).crash},
		{name: "power cut", strike: (*world).cutPower},
		{name: "damaged disk", strike: (*world).damageDisk},
		{name: "crash in a step", strike: (*world).crashInStep},
		{name: "lost disk", changes: identities, strike: (*world).loseDisk},
		{name: "shutdown", strike: (*world).shutdown},
		{name: "leave", strike: (*world).leave},
		{name: "pause", strike: (*world).pause},
		{name: "host freeze", strike: (*world).freeze},
		{name: "burst", strike: (*world).strikeBurst},
		{name: "cut", strike: (*world).strikeCut},
		{name: "hang-up", strike: (*world).strikeHangUp},
		{name: "slow disk", strike: (*world).slowDisk},
		{name: "failing disk", strike: (*world).failDisk},
		{name: "clock", strike: (*world).retime},
		{name: "suspicion", strike: (*world).suspect},
		{name: "drain", strike: (*world).drain},
		{name: "resign", strike: (*world).resign},
		{name: "transfer", strike: (*world).transfer},
		{name: "priority", strike: (*world).reprioritize},
		{name: "withdrawal", strike: (*world).withdraw},
		{name: "inquiry", strike: (*world).inquire},
		{name: "roster", changes: rosters, strike: func(w *world, r *rand.Rand) { w.changeRoster(r) }},
		{name: "stranded change", changes: rosters, strike: (*world).strandChange},
		{name: "hurried change", changes: rosters, strike: (*world).hurryChange},
		{name: "older copy", changes: copies, strike: (*world).rollBack},
		{name: leaseFault, strike: (*world).changeLease},
		{name: "begin again", changes: identities, strike: (*world).beginAgain},
		{name: "suspend", strike: (*world).suspend},
		{name: "second process", strike: (*world).intrude},
		{name: "short election", strike: (*world).holdShortElection},
		{name: "death", lives: true, strike: (*world).perish},
		{name: "upgrade", lives: true, strike: (*world).upgrade},
		{name: "hang", lives: true, strike: (*world).hang},
		{name: "companion's death", companions: true, strike: (*world).killCompanion},
		{name: "reloaded hooks", companions: true, strike: (*world).reloadHooks},
	}
}

// strike is one fault of a seed's schedule. Its details follow from its own draws, so that they
// stay the same when other faults are omitted.
type strike struct {
	kind int
	at   time.Duration
	draw uint64
	host int // the number of the agent that a join starts
}

// drawSchedule draws every fault of a seed, in the order of time.
func drawSchedule(p *plan, seed uint64) []strike {
	var all []strike
	for i, mean := range p.intervals {
		if mean == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 0x6661756c74+uint64(i)<<32))
		if i == 0 { // a join happens once, and only to some agents
			for host := range p.voters + p.observers {
				if rng.IntN(3) == 0 {
					all = append(all, strike{at: time.Duration(rng.Int64N(int64(p.calm + p.chaos))), host: host})
				}
			}
			continue
		}
		for at := p.calm + around(rng, mean); at < p.calm+p.chaos; at += max(1, around(rng, mean)) {
			all = append(all, strike{kind: i, at: at, draw: rng.Uint64()})
		}
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return all
}

// shrinkSchedule drops the faults that do not strike, moves the others closer together, and
// sets when the chaos phase then ends. It returns the faults that strike.
func (w *world) shrinkSchedule(all []strike) []int {
	s := &w.options.Shrunk
	var kept []int
	end := w.plan.calm + w.plan.chaos
	last, moved := time.Duration(0), time.Duration(0)
	step := func(at time.Duration, most time.Duration) time.Duration {
		gap := at - last
		if s.Gap > 0 {
			gap = min(gap, most)
		}
		last, moved = at, moved+gap
		return moved
	}
	for i := range all {
		if !s.strikes(i) {
			continue
		}
		all[i].at = step(all[i].at, s.Gap)
		kept = append(kept, i)
	}
	w.chaosEnd = step(end, max(s.Gap, quietLeases*w.plan.timing.Lease))
	return kept
}

// quietLeases is for how many leases a shrunk world goes on after its last fault: so long that
// all effects of the fault end.
const quietLeases = 8

func (w *world) scheduleFaults() {
	kinds := faultKinds()
	for _, i := range w.kept {
		f := w.schedule[i]
		w.later(f.at, func() {
			kind := &kinds[f.kind]
			w.stats.Faults[kind.name]++
			w.mark(-1, spacetime.Fault, fmt.Sprintf("fault %d: %s", i, kind.name))
			if kind.strike == nil {
				w.start(w.numbered(f.host))
				return
			}
			kind.strike(w, rand.New(rand.NewPCG(f.draw, uint64(f.kind))))
		})
	}
}

// joins reports whether a fault of the schedule starts this host's agent.
func (w *world) joins(host int) bool {
	return slices.ContainsFunc(w.kept, func(i int) bool { return w.schedule[i].kind == 0 && w.schedule[i].host == host })
}

// lasts draws how long a fault lasts: mostly about a lease.
func (w *world) lasts(r *rand.Rand) time.Duration {
	return around(r, pick(r, w.plan.timing.Heartbeat, w.plan.timing.Lease, w.plan.timing.Lease, 4*w.plan.timing.Lease))
}

// victim draws an agent. Half of the time it draws a leader.
func (w *world) victim(r *rand.Rand) *agent {
	lead, log, host := r.IntN(2) == 0, r.IntN(8), r.IntN(w.plan.voters+w.plan.observers)
	if lead {
		if a := w.find(w.logs[log%len(w.logs)].holder.Peer); a != nil {
			return a
		}
	}
	return w.numbered(host)
}

func (w *world) anyone(r *rand.Rand) *agent {
	return w.numbered(r.IntN(w.plan.voters + w.plan.observers))
}

// numbered returns the agent of that number; if it does not exist, the next one that does.
func (w *world) numbered(host int) *agent {
	for _, a := range w.agents {
		if a.number >= host {
			return a
		}
	}
	return w.agents[0]
}
