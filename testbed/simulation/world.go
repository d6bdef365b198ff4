package simulation

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

// phase is how far a run has come.
type phase uint8

const (
	chaos   phase = iota // faults happen
	healing              // they have ended; a leader must come
	stable               // it came; it must stay
)

// world is one run. It is single-threaded: everything happens in run.
type world struct {
	rng     *rand.Rand
	now     int64 // true time
	queue   queue
	plan    plan
	agents  []*agent
	conns   [][]*conn // by agent, symmetric
	links   [][]link  // directed: [from][to]
	burst   burst
	logs    []*contestLog // by election of the plan, the roster election last
	phase   phase
	heal    recovery
	trace   trace
	stats   Stats
	newest  election.Version // of all stable rosters on any disk
	asked   election.RequestID
	replied map[election.RequestID]bool

	violation *Violation
}

func newWorld(o Options) *world {
	rng := rand.New(rand.NewPCG(o.Seed, 0x646f79656e))
	drift := o.Drift
	if drift == 0 {
		drift = statedDrift
	}
	w := &world{rng: rng, plan: drawPlan(rng, drift), replied: map[election.RequestID]bool{},
		stats: Stats{Faults: map[string]int{}}}
	w.trace = trace{ring: make([]record, o.Trace), live: o.Live}
	n := w.plan.voters + w.plan.observers
	for range len(w.plan.elections) + 1 {
		w.logs = append(w.logs, newContestLog())
	}
	w.conns = make([][]*conn, n)
	w.links = make([][]link, n)
	for i := range n {
		w.conns[i] = make([]*conn, n)
		w.links[i] = make([]link, n)
		for j := range i {
			c := &conn{}
			w.conns[i][j], w.conns[j][i] = c, c
		}
		w.agents = append(w.agents, w.newAgent(i))
	}
	w.ensureCandidates()
	return w
}

// run plays the whole seed.
func (w *world) run(seed uint64) {
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic", "%v\n%s", r, debug.Stack())
		}
		if w.violation != nil {
			w.violation.Seed, w.violation.Trace = seed, w.trace.lines()
		}
	}()
	w.note(nil, "seed %d: %s", seed, w.plan)
	for _, a := range w.agents {
		w.after(around(w.rng, w.plan.timing.Heartbeat), func() { w.start(a) })
	}
	w.scheduleFaults()
	w.until(int64(w.plan.calm + w.plan.chaos))
	w.healAll()
}

// until lets happen what happens before the true time t.
func (w *world) until(t int64) {
	for w.violation == nil {
		a, at := w.nextWake()
		if next := w.queue.next(); next <= at {
			a, at = nil, next
		}
		if at >= t {
			w.now = t
			return
		}
		w.now = at
		switch {
		case a != nil:
			a.wakeAt = never
			w.step(a, election.Tick{})
		default:
			w.happen(w.queue.pop())
		}
	}
}

func (w *world) happen(e event) {
	if e.run != nil {
		e.run()
		return
	}
	w.arrive(e)
}

func (w *world) nextWake() (*agent, int64) {
	var first *agent
	at := never
	for _, a := range w.agents {
		if a.wakeAt < at {
			first, at = a, a.wakeAt
		}
	}
	return first, at
}

// after lets run happen later.
func (w *world) after(d time.Duration, run func()) {
	w.queue.push(event{at: w.now + int64(d), run: run})
}

// later is after, for what a fault does or ends: when all faults have ended at
// once, it is void.
func (w *world) later(d time.Duration, run func()) {
	w.after(d, func() {
		if w.phase == chaos {
			run()
		}
	})
}

// note writes a line of the trace that is no step.
func (w *world) note(a *agent, format string, args ...any) {
	if !w.trace.wanted() {
		return
	}
	r := record{at: w.now, agent: a, note: fmt.Sprintf(format, args...)}
	if a != nil {
		r.life = a.life
	}
	w.trace.add(r)
}

// fail ends the run: a rule was violated.
func (w *world) fail(rule, format string, args ...any) {
	if w.violation != nil {
		return
	}
	w.violation = &Violation{Rule: rule, At: time.Duration(w.now), What: fmt.Sprintf(format, args...)}
	first, _, _ := strings.Cut(w.violation.What, "\n")
	w.note(nil, "VIOLATION of %s: %s", rule, first)
}

// chance is true with that probability.
func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// around draws an exponential duration of that mean.
func (w *world) around(mean time.Duration) time.Duration { return around(w.rng, mean) }
