package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
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
	companions bool // hosts have something that acts beside what leads
	revised    bool // the roster's settings and rights change
	early      bool // disks are lost while the voters form the roster
	algorithm  elector.Algorithm
	settings

	loss, repeat, reorder float64 // shares of messages, always; in bursts there are more

	drift     int64         // how far clock rates really stray, parts per million
	delay     time.Duration // mean delay of a message
	late      time.Duration // mean delay of a timer
	write     time.Duration // mean duration of a write
	heeds     float64       // share of withdrawals at which the program stops when asked
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
		algorithm: pick(rng, elector.Bully, elector.Ring),
		settings: settings{
			timing: pick(rng, elector.Timing{Heartbeat: 50 * time.Millisecond, Lease: 300 * time.Millisecond},
				elector.Timing{Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond},
				elector.Timing{Heartbeat: 100 * time.Millisecond, Lease: 400 * time.Millisecond}),
			preempt: rng.IntN(3) != 0,
		},
		heeds: pick(rng, 0, 0.5, 0.9),
		stale: pick(rng, 0, 0.3, 0.9),
		drift: drift,
	}
	for i := range pick(rng, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, maxElections-1) {
		p.elections = append(p.elections, election.Name(fmt.Sprintf("job%d", i+1)))
	}
	fewer := p.quorum && rng.IntN(5) == 0 // many agents that could be voters: roster changes matter
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

// changes reports whether this seed changes the set of voters in this way.
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

// around draws an exponential duration with this mean, and at most eight times the mean.
func around(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(rng.ExpFloat64(), 8) * float64(mean))
}
