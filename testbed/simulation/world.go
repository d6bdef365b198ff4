package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

type event struct {
	flight
	run func()
}

type phase uint8

const (
	chaos   phase = iota // faults happen
	healing              // faults have ended; agents must agree on a leader
	stable               // agents have agreed; the leader must stay
)

// world is one run. It is single-threaded: everything happens in the method run.
type world struct {
	virtual.Timeline[int64, event] // in true time

	options Options
	rng     *rand.Rand
	plan    plan
	agents  []*agent
	conns   [][]*conn // by agent, symmetric
	links   [][]link  // directed: [from][to]
	burst   burst
	logs    []*contestLog // by election of the plan, the roster election last
	phase   phase
	heal    recovery
	counter *counter
	scribe  *scribe
	stats   Stats
	lease   time.Duration    // the lease that an agent gets at its next start
	longest time.Duration    // the longest lease that any agent has had
	newest  election.Version // the newest version of all stable rosters on any disk
	asked   election.RequestID
	shorts  map[election.Name]election.Term // the newest term in which each short election was led
	short   int                             // how many short elections are under way
	replied map[election.RequestID]bool

	schedule   []strike
	kept       []int // the faults of the schedule that strike
	chaosEnd   time.Duration
	programs   int                      // started so far
	metas      int                      // given so far
	deaths     bool                     // leaders die after all other faults have ended
	former     map[election.PeerID]bool // identities whose disks are lost
	formed     bool                     // a first roster was committed
	shared     bool                     // the first roster was committed on at least two disks
	orphaned   bool                     // the first roster was on one disk only, and that disk was lost
	wipedEarly int
	rolledBack bool // an older data directory was restored somewhere
	inquiries  map[election.RequestID]inquiry
	stepping   *agent                   // the agent that is polled within its own step
	clusters   map[string][]*contestLog // by cluster ID: the logs of clusters of agents that began again
	handles    election.Message         // the message that the present step handles
	polling    bool                     // pollOthers runs
	history    *History                 // nil: not recorded

	violation *Violation
}

func newWorld(o Options) *world {
	w := &world{options: o, replied: map[election.RequestID]bool{}, inquiries: map[election.RequestID]inquiry{},
		former: map[election.PeerID]bool{}, shorts: map[election.Name]election.Term{}, clusters: map[string][]*contestLog{}, stats: Stats{Faults: map[string]int{}}}
	w.plan = w.drawPlan()
	w.lease = w.plan.timing.Lease
	if w.plan.varied {
		w.lease = w.drawLease(rand.New(rand.NewPCG(o.Seed, 0x6c65617365)))
	}
	w.rng = rand.New(rand.NewPCG(o.Seed, 0x63616f73+o.Shrunk.Variation<<32))
	w.schedule = drawSchedule(&w.plan, o.Seed)
	w.kept = w.shrinkSchedule(w.schedule)
	w.counter = w.newCounter()
	w.scribe = newScribe(w)
	for i, name := range append(slices.Clone(w.plan.elections), election.RosterElection) {
		w.logs = append(w.logs, newContestLog(i, name))
	}
	for number := range w.plan.voters + w.plan.observers {
		if !slices.Contains(o.Shrunk.Absent, number) {
			w.agents = append(w.agents, w.newAgent(len(w.agents), number))
			w.Wakes = append(w.Wakes, never)
		}
	}
	if len(w.agents) == 0 || len(w.firstVoters()) == 0 {
		w.fail("options", "nobody is left to vote")
		return w
	}
	w.wire()
	w.ensureCandidates()
	if o.Record {
		w.history = newHistory(w)
	}
	return w
}

// drawPlan draws what the seed decides. The options may decide some of that instead.
func (w *world) drawPlan() plan {
	o := &w.options
	drift := cmp.Or(o.Drift, statedDrift)
	p := drawPlan(rand.New(rand.NewPCG(o.Seed, 0x646f79656e)), drift)
	p.drawLives(o.Seed)
	if o.Voters > 0 {
		p.voters, p.observers = o.Voters, 0
	}
	for i := range o.many {
		p.elections = append(p.elections, election.Name(fmt.Sprintf("many%d", i)))
	}
	if n := o.Shrunk.Elections; n > 0 {
		p.elections = p.elections[:min(n, len(p.elections))]
	}
	return p
}

// wire makes the links between all agents. Each link has its own draws, so that what happens on
// one does not depend on the others.
func (w *world) wire() {
	n := len(w.agents)
	w.conns = make([][]*conn, n)
	w.links = make([][]link, n)
	for i, a := range w.agents {
		w.conns[i] = make([]*conn, n)
		w.links[i] = make([]link, n)
		for j := range i {
			c := &conn{}
			w.conns[i][j], w.conns[j][i] = c, c
		}
		for j, b := range w.agents {
			name := uint64(a.number)<<8 + uint64(b.number) + w.options.Shrunk.Variation<<16
			w.links[i][j].rng = rand.New(rand.NewPCG(w.options.Seed, 0x6c696e6b<<32+name))
		}
	}
}

func (w *world) run(seed uint64) {
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic", "%v\n%s", r, debug.Stack())
		}
		if w.violation != nil {
			w.violation.Seed, w.violation.Replay = seed, w.options.Command()
		}
	}()
	w.note(nil, "seed %d: %s", seed, w.plan)
	for _, a := range w.agents {
		if !w.joins(a.number) {
			w.after(around(a.rng, w.plan.timing.Heartbeat), func() { w.start(a) })
		}
	}
	w.scheduleFaults()
	w.watchCounter()
	w.scribe.writes(maxWritten)
	w.until(int64(w.chaosEnd))
	w.checkCounter()
	w.scribe.judge()
	if w.options.chaosOnly {
		return
	}
	w.healAll()
	w.checkCounter()
	w.scribe.judge()
	w.checkFootprints()
}

// until plays all events before the true time t.
func (w *world) until(t int64) {
	for w.violation == nil {
		e, agent, ok := w.Next(t - 1)
		switch {
		case !ok:
			w.Now = t
			return
		case agent >= 0:
			w.step(w.agents[agent], election.Tick{})
		case e.run != nil:
			e.run()
		default:
			w.arrive(e.flight)
		}
	}
}

// after runs the function later.
func (w *world) after(d time.Duration, run func()) {
	w.Push(w.Now+int64(d), event{run: run})
}

// later is like after, for what a fault does or ends. The function is not run if all faults have
// ended by then.
func (w *world) later(d time.Duration, run func()) {
	w.after(d, func() {
		if w.phase == chaos {
			run()
		}
	})
}

// inLife returns a function that calls run, but does nothing once the agent's next life has begun.
func (a *agent) inLife(run func()) func() {
	life := a.life
	return func() {
		if a.life == life {
			run()
		}
	}
}

// note records what happened to an agent, or to the whole world.
func (w *world) note(a *agent, format string, args ...any) {
	if w.options.Live == nil && w.history == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	w.noting(a, text)
	w.trace(a, "-- "+text)
}

func (w *world) trace(a *agent, text string) {
	if w.options.Live == nil {
		return
	}
	who := ""
	if a != nil {
		who = fmt.Sprintf("%s/%d [%d]", a.peer, a.life, a.clock.at(w.Now))
	}
	_, _ = fmt.Fprintf(w.options.Live, "%-12s %-8s %s\n", w.now().Round(time.Microsecond), who, text)
}

// fail ends the run because a rule was violated.
func (w *world) fail(rule, format string, args ...any) {
	if w.violation != nil || w.rolledBack && rests(rule) || w.options.Rule != "" && rule != w.options.Rule && rule != "panic" {
		return
	}
	w.violation = &Violation{Rule: rule, At: time.Duration(w.Now), phase: w.phase, What: fmt.Sprintf(format, args...)}
	first, _, _ := strings.Cut(w.violation.What, "\n")
	w.note(nil, "VIOLATION of %s: %s", rule, first)
	w.mark(-1, spacetime.Violation, rule+": "+w.violation.What)
}

// around draws an exponential duration with this mean.
func (w *world) around(mean time.Duration) time.Duration { return around(w.rng, mean) }
