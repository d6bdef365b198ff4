package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxInbox bounds the messages that wait for a paused agent. The queues of the real transport
// are bounded too.
const maxInbox = 256

// agent is one host with its clock and disk, and the process on it, if alive.
type agent struct {
	w      *world
	id     int // its index in the list of all agents that exist
	number int // its number among the agents that the seed drew
	wiped  int // how many disks it has lost

	rolledBack bool          // an older copy of its data directory was restored
	own        []*contestLog // logs of its cluster, if an agent that began again formed that cluster alone; else nil
	resets     bool          // its next start is with --reset-genesis
	peer       election.PeerID
	name       string
	clock      clock
	disk       disk

	settings settings
	seen     []sighting // by agent: what this host's gossip shows of that agent
	stand    []standing // by election of the plan: its candidacies

	alive     bool
	life      uint32 // how many processes it has had
	run       election.RunID
	born      int64 // when its newest process began
	boot      election.LineageID
	past      *election.Past // what its record holds; nil: it has no record, and its next life begins a lineage
	dying     bool           // the process dies in the step under way
	unseen    bool           // it died before any reader saw the outcome of its last step
	joinedAt  int64
	elector   *elector.Elector
	paused    int  // pauses under way
	frozen    int  // freezes of the whole host under way
	suspended bool // when the pause ends, it learns that its host was suspended
	doom      *doom
	late      lateness
	inbox     []election.Input
	draining  bool
	stopping  bool                          // it was asked to shut down
	ending    bool                          // it has handed over, and is about to end
	contests  []*elector.ContestStatus      // the status of its elections, as the last poll read it
	terms     map[*contestLog]election.Term // by log: the highest term of a leader that its status named in this life
	deadlines []election.Instant            // by log: the latest end of its own lease that its status showed
	spin      spin
	rng       *rand.Rand // for what its host does by chance

	registry       *actors.Registry                // which programs are candidates, and what a release must wait for
	queue          []election.Input                // what the registry has for the elector
	turning        bool                            // true while the method turn runs
	priority       int                             // of its candidacies that state no priority
	recordedActors map[election.Name]record.Actors // the part of its record that the registry writes
	programs       []process                       // by election of the plan
	companion      companion
	runs           []run // of the companion, by election of the plan
}

// doom is a crash in the middle of a step.
type doom struct {
	steps int  // how many steps are taken before the one in which it dies
	done  int  // how many actions of its output are carried out before the crash
	loud  bool // the kernel closes the connections, and the peers notice at once
	lost  bool // the record is lost too
	lasts time.Duration
}

// standing is an agent's candidacy in one election.
type standing struct {
	candidate bool // it is a candidate here, now or at other times
	stands    bool // it is a candidate now
	priority  int  // the priority that it advertises now
	usual     int  // its priority without faults, above 0
	stated    bool // the candidacy has its own priority, not its agent's
}

func (w *world) newAgent(id, number int) *agent {
	v := voter(number)
	a := &agent{w: w, id: id, number: number, peer: v.Peer, name: v.Name}
	a.rng = rand.New(rand.NewPCG(w.options.Seed, 0x686f7374+uint64(number)<<32))
	a.clock = clock{base: election.Instant(1e9 + a.rng.Int64N(1e14)), ppm: w.drawRate(a.rng)}
	a.seen = make([]sighting, w.plan.voters+w.plan.observers)
	for range w.plan.elections {
		s := standing{candidate: a.rng.IntN(8) != 0, usual: pick(a.rng, 100, 100, 100, 50, 200), stated: a.rng.IntN(2) == 0}
		if a.priority = cmp.Or(a.priority, s.usual); !s.stated {
			s.usual = a.priority
		}
		s.stands, s.priority = s.candidate, s.usual
		a.stand = append(a.stand, s)
	}
	a.terms, a.deadlines = map[*contestLog]election.Term{}, make([]election.Instant, len(w.logs))
	a.programs, a.runs = make([]process, len(w.plan.elections)), make([]run, len(w.plan.elections))
	for range w.plan.elections {
		a.companion.acts = append(a.companion.acts, w.plan.companions && a.rng.IntN(4) != 0)
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

// voter returns the roster's entry for the agent of that number, with the identity of its first disk.
func voter(number int) election.Voter {
	return election.Voter{Name: fmt.Sprintf("n%c", digit(number)), Peer: election.PeerID(fmt.Sprintf("p%c", digit(number)))}
}

// ensureCandidates makes sure that each election has an agent that can lead it.
func (w *world) ensureCandidates() {
	for e := range w.plan.elections {
		if !slices.ContainsFunc(w.agents, func(a *agent) bool { return a.stand[e].candidate }) {
			s := &w.agents[e%len(w.agents)].stand[e]
			s.candidate, s.stands = true, true
		}
	}
}

func (w *world) config(a *agent) election.Config {
	c := election.Config{Self: a.holder(), Run: a.run, Life: a.lifeNumber(), Name: a.name, JoinedAt: a.joinedAt,
		Quorum: w.plan.quorum, Algorithm: w.plan.algorithm, Timing: a.settings.timing, Drift: election.DefaultDrift,
		Preempt: a.settings.preempt, PreemptDelay: a.settings.preemptDelay,
		MaxElections: len(w.logs) + 2*maxShort}
	switch {
	case a.own != nil:
		c.Alone = true
	case w.plan.prepared || a.number >= w.plan.voters:
	case len(w.firstVoters()) == 1:
		c.Alone = a.wiped == 0 || !w.formed
	default:
		c.Voters = each.Of(w.firstVoters(), func(v election.Voter) string { return v.Name })
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
		if a.disk.damaged == nil { // if it is damaged, the agent starts once the disk works again
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
	a.late = lateness{due: election.Never, writing: election.Never}
	var err error
	a.elector, err = elector.New(w.config(a), state, past, a.clock.at(w.Now), rand.New(rand.NewPCG(a.rng.Uint64(), 0)))
	if err != nil {
		w.fail("start", "%s: %v", a.peer, err)
		return
	}
	w.note(a, "STARTS as %s with %s%s", a.holder(), messages.State(state), describePast(past))
	w.starting(a)
	w.beginsLeading(a, past)
	a.setUp(past)
	w.advertise(a)
	a.goOn()
	w.step(a, election.Tick{})
	a.accompany()
	for _, b := range w.agents {
		w.dial(a, b, w.around(w.redial()))
	}
}

// stop ends the process. If loud, the kernel closes the connections, and the peers notice at
// once.
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
	for e := range a.programs {
		a.programs[e].k = nil
	}
	a.companion.k = nil
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

// input hands the agent an input now or after its pause. A pause keeps at most maxInbox messages.
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

// resume ends one pause. After the last one, the agent handles the inputs that waited. A Tick for its overdue
// timer comes before or after these inputs.
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

// never is a true time that is never reached.
const never int64 = 1<<63 - 1

// million is the unit of clock rates: parts per million. They are integers, so that every
// machine computes the same.
const million = 1_000_000

// clock is one host's CLOCK_BOOTTIME. True time is in nanoseconds since the run began.
type clock struct {
	base  election.Instant // what the clock read at since
	since int64
	ppm   int64 // how much faster than true time it runs
	epoch int   // counts the host's boots: the clock starts again at each
}

// at reads the clock at a true time that is not before since.
func (c clock) at(t int64) election.Instant {
	dt := t - c.since
	return c.base + election.Instant(dt+dt*c.ppm/million)
}

// when returns the first true time at which the clock reads i or later; never
// if that is more than a day away.
func (c clock) when(i election.Instant) int64 {
	d := int64(i - c.base)
	if d <= 0 {
		return c.since
	}
	if i == election.Never || d > int64(24*time.Hour) {
		return never
	}
	t := c.since + int64(float64(d)/(million+float64(c.ppm))*million)
	for c.at(t) < i {
		t++
	}
	for t > c.since && c.at(t-1) >= i {
		t--
	}
	return t
}

// retime changes the rate from the true time t on.
func (c *clock) retime(t, ppm int64) {
	c.base, c.since, c.ppm = c.at(t), t, ppm
}

// reboot starts the clock again, at the instant base.
func (c *clock) reboot(t int64, base election.Instant) {
	c.base, c.since = base, t
	c.epoch++
}
