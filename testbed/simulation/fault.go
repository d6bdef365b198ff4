package simulation

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// fault is one kind of trouble. Each seed draws which kinds it meets, and how
// often.
type fault struct {
	name   string
	roster bool // changes the roster: only in some of the seeds
	strike func(*world)
}

func faultKinds() []fault {
	return []fault{
		{name: "crash", strike: (*world).crash},
		{name: "shutdown", strike: (*world).shutdown},
		{name: "pause", strike: (*world).pause},
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
		{name: "roster", roster: true, strike: (*world).changeRoster},
	}
}

// scheduleFaults lets each kind that the plan has strike again and again, until
// the chaos is over.
func (w *world) scheduleFaults() {
	for i, f := range faultKinds() {
		mean := w.plan.intervals[i]
		if mean == 0 {
			continue
		}
		var again func()
		again = func() {
			if w.phase != chaos {
				return
			}
			w.stats.Faults[f.name]++
			f.strike(w)
			w.later(w.around(mean), again)
		}
		w.later(w.plan.calm+w.around(mean), again)
	}
}

// lasts draws how long a trouble lasts: mostly about a lease.
func (w *world) lasts() time.Duration {
	return w.around(pick(w.rng, w.plan.timing.Heartbeat, w.plan.timing.Lease, w.plan.timing.Lease, 4*w.plan.timing.Lease))
}

// victim draws an agent, a leader half of the time.
func (w *world) victim() *agent {
	if w.chance(0.5) {
		l := w.logs[w.rng.IntN(len(w.logs))]
		if a := w.find(l.holder.Peer); a != nil {
			return a
		}
	}
	return w.agents[w.rng.IntN(len(w.agents))]
}

// crash kills a process; sometimes the whole host, whose clock then starts anew
// and whose programs are gone.
func (w *world) crash() {
	a := w.victim()
	if !a.alive {
		return
	}
	loud := w.chance(0.7)
	w.stop(a, loud)
	if w.chance(0.3) {
		w.note(a, "its host reboots")
		a.clock.reboot(w.now, election.Instant(1e9+w.rng.Int64N(1e10)))
	}
	w.later(w.lasts(), func() { w.start(a) })
}

// shutdown stops a process the clean way, and starts it again.
func (w *world) shutdown() {
	a := w.victim()
	life := a.life
	a.stopping = a.alive
	w.input(a, election.Shutdown{})
	w.later(2*w.plan.timing.Lease+w.lasts(), func() {
		if a.life == life {
			w.stop(a, true) // it did not end by itself, or was paused
		}
		w.start(a)
	})
}

func (w *world) pause() {
	a := w.victim()
	if !a.alive {
		return
	}
	w.note(a, "is PAUSED")
	life := a.life
	a.paused++
	a.wakeAt = never
	w.later(w.lasts(), func() { w.resume(a, life) })
}

// strikeBurst makes the whole network lose, repeat, reorder or delay messages.
func (w *world) strikeBurst() {
	w.burst = burst{loss: pick(w.rng, 0, 0.05, 0.3), repeat: pick(w.rng, 0, 0.1, 0.5), reorder: pick(w.rng, 0, 0.1, 0.5),
		slow: pick(w.rng, 0, 0, w.plan.timing.Heartbeat, w.plan.timing.Lease/3, w.plan.timing.Lease)}
	w.note(nil, "BURST %+v", w.burst)
	w.later(w.lasts(), func() { w.burst = burst{} })
}

func (w *world) slowDisk() {
	a := w.victim()
	w.note(a, "its disk is SLOW")
	a.disk.slow++
	w.later(w.lasts(), func() { a.disk.slow-- })
}

func (w *world) failDisk() {
	a := w.victim()
	w.note(a, "its disk FAILS")
	a.disk.failing++
	w.later(w.lasts(), func() { a.disk.failing-- })
}

// retime changes a clock's rate, within the bound.
func (w *world) retime() {
	a := w.victim()
	a.clock.retime(w.now, w.drawRate())
	w.note(a, "its clock runs at %+d ppm", a.clock.ppm)
	if a.alive && a.paused == 0 && a.wakeAt != never {
		w.step(a, election.Tick{}) // its timer is set anew
	}
}

// drawRate draws how much faster than true time a clock runs: often as far off
// as it may.
func (w *world) drawRate() int64 {
	return pick(w.rng, -w.plan.drift, w.plan.drift, w.rng.Int64N(2*w.plan.drift+1)-w.plan.drift)
}

// suspect makes an agent's gossip suspect or forget another for nothing.
func (w *world) suspect() {
	a, b := w.agents[w.rng.IntN(len(w.agents))], w.victim()
	if a == b {
		return
	}
	w.note(a, "its gossip doubts %s", b.peer)
	if w.chance(0.5) {
		a.seen[b.id].member.Suspected = true
	} else {
		a.seen[b.id] = sighting{}
	}
	w.tellView(a)
	w.sight(a, b, w.lasts())
}
