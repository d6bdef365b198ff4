package history

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

const (
	voters   = 3
	interval = 20 * time.Millisecond // between a program's additions, on average
	length   = 5 * time.Second       // of a run
	never    = math.MaxInt64
)

// timing is the profile local.
var timing = elector.Timing{Heartbeat: 50 * time.Millisecond, Lease: 300 * time.Millisecond}

// world is one run.
type world struct {
	rng      *rand.Rand
	now      int64 // true time, nanoseconds
	order    uint64
	events   events
	hosts    []*host
	register register
	history  recorder

	leaderships int
	done        int // operations answered
}

type event struct {
	at    int64
	order uint64
	run   func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// play runs a world from its seed. guarded: the register checks tokens.
func play(seed uint64, guarded bool) (*world, error) {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x70617573)), register: register{guarded: guarded}}
	roster := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}}
	for i := range voters {
		h := &host{world: w, id: i, base: election.Instant(1e9 + w.rng.Int64N(1e12)), ppm: w.rng.Int64N(20_001) - 10_000, wakeAt: never}
		w.hosts = append(w.hosts, h)
		roster.Voters = append(roster.Voters, election.Voter{Name: string(h.peer()), Peer: h.peer()})
	}
	for _, h := range w.hosts {
		h.disk = election.State{Peer: h.peer(), Roster: roster}
		if err := h.start(); err != nil {
			return nil, err
		}
	}
	w.after(w.around(timing.Lease), w.misfortune)
	w.after(interval, w.look)
	if err := w.run(); err != nil {
		return nil, err
	}
	for _, h := range w.hosts {
		h.program.die()
	}
	return w, nil
}

func (w *world) run() error {
	const most = 2_000_000
	for range most {
		h := w.nextHost()
		if len(w.events) > 0 && w.events[0].at <= h.wakeAt {
			e := heap.Pop(&w.events).(event)
			if w.now = e.at; w.now >= int64(length) {
				return nil
			}
			e.run()
			continue
		}
		w.now = max(w.now, h.wakeAt)
		if w.now >= int64(length) {
			return nil
		}
		h.wakeAt = never // until its step says when
		h.do(h.boot, func() { h.step(election.Tick{}) })
	}
	return fmt.Errorf("play: more than %d events by %v", most, time.Duration(w.now))
}

func (w *world) nextHost() *host {
	first := w.hosts[0]
	for _, h := range w.hosts {
		if h.wakeAt < first.wakeAt {
			first = h
		}
	}
	return first
}

func (w *world) after(d time.Duration, run func()) {
	w.order++
	heap.Push(&w.events, event{at: w.now + int64(d), order: w.order, run: run})
}

// send puts a message under way, unless it is lost.
func (w *world) send(from *host, s election.Envelope) {
	for _, to := range w.hosts {
		if to.peer() == s.To && to.alive && !from.cut && !to.cut && !w.chance(1, 100) {
			to.later(func() { to.step(election.Received{From: from.peer(), Message: s.Message}) })
		}
	}
}

// views tells everybody who is alive.
func (w *world) views() {
	var v election.View
	for _, h := range w.hosts {
		if h.alive {
			v.Members = append(v.Members, election.Member{Peer: h.peer(), Boot: h.boot, Name: string(h.peer()),
				JoinedAt:    int64(h.boot)*10 + int64(h.id),
				Candidacies: []election.Candidacy{{Election: election.Default, Priority: election.DefaultPriority}}})
		}
	}
	for _, h := range w.hosts {
		if h.alive {
			h.later(func() { h.step(election.ViewChanged{View: v}) })
		}
	}
}

// misfortune does one of them to a host, and draws when the next comes.
func (w *world) misfortune() {
	w.after(w.around(timing.Lease), w.misfortune)
	h := w.hosts[w.rng.IntN(len(w.hosts))]
	switch w.rng.IntN(3) {
	case 0:
		h.pause(w.around(timing.Lease))
	case 1:
		h.cut = true
		w.after(w.around(2*timing.Lease), func() { h.cut = false })
	case 2:
		if h.alive {
			h.crash()
			w.after(w.around(timing.Lease), func() { _ = h.start() }) // the same call succeeded at the beginning
		}
	}
}

// look reads the register from outside the cluster, with no token.
func (w *world) look() {
	w.after(w.around(interval), w.look)
	o := w.history.call(voters, Read, w.now)
	w.after(w.delay(), func() {
		value := w.register.value
		w.after(w.delay(), func() { w.history.answered(o, value, w.now) })
	})
}

func (w *world) chance(n, of int) bool { return w.rng.IntN(of) < n }

// delay draws how long a message or a write takes.
func (w *world) delay() time.Duration { return w.around(2 * time.Millisecond) }

// around draws an exponential time of that mean.
func (w *world) around(mean time.Duration) time.Duration {
	return time.Duration(w.rng.ExpFloat64() * float64(mean))
}
