package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxInbox bounds what waits for a paused agent; a real transport's queues are
// bounded too.
const maxInbox = 256

// agent is one host with its clock and disk, and the process on it, if alive.
type agent struct {
	id     int // among those that exist
	number int // among those the seed drew
	wiped  int // counts the disks it lost

	rolledBack bool          // its data directory, to an older copy
	own        []*contestLog // of the cluster it formed when it began again, alone; nil: it did not
	resets     bool          // its next start is with --reset-genesis
	peer       election.PeerID
	name       string
	clock      clock
	disk       disk

	settings settings
	seen     []sighting // by agent: what gossip told this one
	stand    []standing // by election of the plan

	alive     bool
	life      uint32 // counts its processes
	run       election.RunID
	born      int64 // when its newest process was
	boot      election.LineageID
	past      *election.Past // on its record; nil: it has none, and its next life begins a lineage
	secret    [32]byte       // of the lineage
	dying     bool           // in the middle of the step under way
	unseen    bool           // it died before readers saw the outcome of its last step
	joinedAt  int64
	elector   *elector.Elector
	paused    int  // pauses under way
	frozen    int  // of the whole host
	suspended bool // and it is to learn that when it goes on
	doom      *doom
	inbox     []election.Input
	draining  bool
	stopping  bool                     // was told to shut down
	ending    bool                     // has handed over, and ends
	contests  []*elector.ContestStatus // last polled, like a reader of the socket
	terms     []election.Term          // by contest log: the highest its status ever told
	deadlines []election.Instant       // by contest log: the latest end of its own lease it ever told
	spin      spin
	rng       *rand.Rand // of what its host does by chance
}

// doom is a crash in the middle of a step: of the steps-th from now on, after so
// many of the things that its output asks for.
type doom struct {
	steps, done int
	loud        bool
	lost        bool // the record is, too
	lasts       time.Duration
}

// standing is an agent's candidacy in one election.
type standing struct {
	candidate bool // it ever stands
	stands    bool // it does now
	priority  int  // advertised now
	usual     int  // above 0
}

func (w *world) newAgent(id, number int) *agent {
	v := voter(number)
	a := &agent{id: id, number: number, peer: v.Peer, name: v.Name}
	a.rng = rand.New(rand.NewPCG(w.options.Seed, 0x686f7374+uint64(number)<<32))
	a.clock = clock{base: election.Instant(1e9 + a.rng.Int64N(1e14)), ppm: w.drawRate(a.rng)}
	if !w.options.Shrunk.has(FirstDrift) {
		a.clock.ppm = 0
	}
	a.seen = make([]sighting, w.plan.voters+w.plan.observers)
	for range w.plan.elections {
		s := standing{candidate: a.rng.IntN(8) != 0, usual: pick(a.rng, 100, 100, 100, 50, 200)}
		s.stands, s.priority = s.candidate, s.usual
		a.stand = append(a.stand, s)
	}
	a.rng = rand.New(rand.NewPCG(w.options.Seed, 0x6c696665+uint64(number)<<32+w.options.Shrunk.Variation<<40))
	state := election.State{Peer: a.peer}
	if w.plan.prepared && number < w.plan.voters {
		state.Roster = &election.Roster{Cluster: "prepared", Version: election.Version{Counter: 1}, Voters: w.firstVoters()}
	}
	a.disk.format(w, a, state)
	return a
}

func (w *world) firstVoters() []election.Voter {
	var voters []election.Voter
	for i := range w.plan.voters {
		if !slices.Contains(w.options.Shrunk.Absent, i) {
			voters = append(voters, voter(i))
		}
	}
	return voters
}

// voter is how a roster knows the agent of that number before it ever lost its
// disk.
func voter(number int) election.Voter {
	return election.Voter{Name: fmt.Sprintf("n%c", digit(number)), Peer: election.PeerID(fmt.Sprintf("p%c", digit(number)))}
}

// ensureCandidates gives each election somebody who can lead it.
func (w *world) ensureCandidates() {
	for e := range w.plan.elections {
		if !slices.ContainsFunc(w.agents, func(a *agent) bool { return a.stand[e].candidate }) {
			s := &w.agents[e%len(w.agents)].stand[e]
			s.candidate, s.stands = true, true
		}
	}
}

func (w *world) config(a *agent) elector.Config {
	c := elector.Config{Self: a.holder(), Run: a.run, Life: a.lifeNumber(), Name: a.name, JoinedAt: a.joinedAt,
		Quorum: w.plan.quorum, Algorithm: w.plan.algorithm, Timing: a.settings.timing, Drift: elector.DefaultDrift,
		Preempt: a.settings.preempt, PreemptDelay: a.settings.preemptDelay, FixedDeadline: a.settings.fixed,
		MaxElections: len(w.logs) + 2*maxShort}
	switch {
	case a.own != nil:
		c.Alone = true
	case w.plan.prepared || a.number >= w.plan.voters:
	case len(w.firstVoters()) == 1:
		c.Alone = a.wiped == 0 || !w.formed
	default:
		for _, v := range w.firstVoters() {
			c.Voters = append(c.Voters, v.Name)
		}
	}
	return c
}

func (w *world) start(a *agent) {
	if a.alive {
		return
	}
	if a.frozen > 0 {
		w.later(w.plan.timing.Heartbeat, func() { w.start(a) })
		return
	}
	state, ok := a.disk.open(w, a)
	if ok && a.resets {
		state, ok = w.resetGenesis(a, state)
	}
	if !ok {
		if a.disk.damaged == nil { // it will be well by and by
			w.later(w.plan.timing.Lease, func() { w.start(a) })
		}
		return
	}
	a.life++
	a.settings = w.drawSettings(a)
	run := election.RunID(a.rng.Uint64())
	past := w.beginLife(a, run, w.Now+a.rng.Int64N(1000))
	a.suspended = false
	a.alive, a.paused, a.draining, a.stopping, a.ending, a.doom = true, 0, false, false, false, nil
	a.inbox, a.contests = nil, nil
	clear(a.seen)
	clear(a.terms)
	var err error
	a.elector, err = elector.New(w.config(a), state, past, a.clock.at(w.Now), rand.New(rand.NewPCG(a.rng.Uint64(), 0)))
	if err != nil {
		w.fail("start", "%s: %v", a.peer, err)
		return
	}
	w.note(a, "STARTS as %s with %s%s", a.holder(), messages.State(state), describePast(past))
	w.starting(a)
	for e, s := range a.stand {
		if s.stands {
			w.step(a, election.Campaign{Election: w.plan.elections[e], Priority: s.priority})
		}
	}
	w.advertise(a)
	w.step(a, election.Tick{})
	w.goOn(a, past)
	for _, b := range w.agents {
		w.dial(a, b, w.around(w.redial()))
	}
}

// stop ends the process. loud: the kernel closes its connections, and the
// others know at once.
func (w *world) stop(a *agent, loud bool) {
	if !a.alive {
		return
	}
	if !a.unseen {
		w.poll(a)
	}
	w.count(a)
	w.checkTrusted(a)
	w.note(a, "STOPS, %s", loudly(loud))
	w.stopping(a)
	a.alive, w.Wakes[a.id], a.inbox, a.contests, a.doom = false, never, nil, nil, nil
	a.disk.kill(w, a)
	w.endLife(a)
	for _, b := range w.agents {
		if b != a {
			w.conns[a.id][b.id].ends[w.side(a, b)].told = false
			w.hangUp(a, b, loud)
		}
	}
	w.gossip(a)
}

func loudly(loud bool) string {
	if loud {
		return "its connections close"
	}
	return "its connections stay open"
}

// input hands the agent something, now or when it is no longer paused.
func (w *world) input(a *agent, in election.Input) {
	if !a.alive {
		return
	}
	if a.paused == 0 {
		w.step(a, in)
		return
	}
	if _, message := in.(election.Received); message && len(a.inbox) >= maxInbox {
		w.stats.Lost++
		return
	}
	a.inbox = append(a.inbox, in)
}

// inputSoon hands it to this process of the agent a little later.
func (w *world) inputSoon(a *agent, in election.Input) {
	w.after(around(a.rng, w.plan.delay/4), a.inLife(func() { w.input(a, in) }))
}

// resume ends one pause. What came meanwhile is handled at once, and the timer
// that is overdue before or after it.
func (w *world) resume(a *agent, life uint32) {
	if !a.alive || a.life != life {
		return
	}
	if a.paused--; a.paused > 0 {
		return
	}
	w.note(a, "RESUMES with %d inputs waiting", len(a.inbox))
	w.resuming(a)
	inbox := a.inbox
	a.inbox = nil
	if a.suspended {
		a.suspended = false
		w.step(a, election.Suspended{})
	}
	first := chance(a.rng, 0.5)
	if first {
		w.step(a, election.Tick{})
	}
	for _, in := range inbox {
		w.step(a, in)
	}
	if !first {
		w.step(a, election.Tick{})
	}
}
