package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
)

// crash kills a process. Its kernel still shows everything it wrote.
func (w *world) crash(r *rand.Rand) {
	a := w.victim(r)
	loud, lasts := chance(r, 0.7), w.lasts(r)
	if !a.alive {
		return
	}
	w.stop(a, loud)
	w.later(lasts, func() { w.start(a) })
}

// cutPower takes a whole host down, whether its agent runs or not: what was not
// synced is gone, the clock starts anew, and so do programs. Half of the time
// the agent was killed and started again a little before, and answers by what
// its former life left.
func (w *world) cutPower(r *rand.Rand) {
	a := w.victim(r)
	loud, lasts, after := chance(r, 0.3), w.lasts(r), around(r, w.plan.timing.Lease)
	base := election.Instant(1e9 + r.Int64N(1e10))
	cut := func() {
		w.stop(a, loud)
		w.note(a, "its host loses POWER, its clock starts again")
		a.disk.powerCut(w, a)
		w.loseRecord(a)
		a.clock.reboot(w.Now, base)
		w.later(lasts, func() { w.start(a) })
	}
	if chance(r, 0.5) || !a.alive {
		cut()
		return
	}
	a.doom = &doom{steps: 1 + r.IntN(12), done: r.IntN(5), loud: loud, lasts: around(r, w.plan.timing.Heartbeat)}
	w.later(after, cut)
}

// damageDisk tears a state while its agent is down. The agent must refuse to
// start, and leave the file as it is, until somebody brings it back.
func (w *world) damageDisk(r *rand.Rand) {
	a := w.victim(r)
	lasts, back := w.lasts(r), w.lasts(r)
	if a.disk.damaged != nil || a.frozen > 0 {
		return
	}
	w.stop(a, true)
	if !a.disk.files.settled() {
		w.later(lasts, func() { w.start(a) })
		return
	}
	w.note(a, "its state is DAMAGED")
	a.disk.damage(a)
	w.later(lasts, func() { w.start(a) })
	w.later(lasts+back, func() {
		w.note(a, "its state is brought BACK as it was")
		a.disk.restore()
		w.start(a)
	})
}

// crashInStep kills a process in the middle of carrying out a step's output:
// one of its next.
func (w *world) crashInStep(r *rand.Rand) {
	a := w.victim(r)
	if a.alive {
		a.doom = &doom{steps: 1 + r.IntN(12), done: r.IntN(5), loud: chance(r, 0.7), lasts: w.lasts(r)}
	}
}

// shutdown stops a process the clean way, and starts it again.
func (w *world) shutdown(r *rand.Rand) {
	a := w.victim(r)
	w.leaveFor(a, 2*w.plan.timing.Lease+w.lasts(r))
}

// leave is a shutdown for long: others go on without the agent.
func (w *world) leave(r *rand.Rand) {
	a := w.victim(r)
	w.leaveFor(a, 8*w.plan.timing.Lease+around(r, 8*w.plan.timing.Lease))
}

func (w *world) leaveFor(a *agent, away time.Duration) {
	stop := a.inLife(func() { w.stop(a, true) }) // if it did not end by itself, or was paused
	a.stopping = a.alive
	w.note(a, "is asked to SHUT DOWN")
	w.input(a, election.Shutdown{})
	w.later(2*w.plan.timing.Lease, stop)
	w.later(away, func() {
		stop()
		w.start(a)
	})
}

// pause stops a process for a while, as SIGSTOP does.
func (w *world) pause(r *rand.Rand) {
	a, lasts := w.victim(r), w.lasts(r)
	if !a.alive {
		return
	}
	w.pauseFor(a, "is PAUSED")
	life := a.life
	w.later(lasts, func() { w.resume(a, life) })
}

func (w *world) pauseFor(a *agent, how string) {
	w.poll(a)
	w.note(a, "%s", how)
	a.paused++
	w.Wakes[a.id] = never
	w.pausing(a)
}

// freeze stops a whole host for a while, its disk and its programs included; its
// clock counts on, as CLOCK_BOOTTIME does through a suspend.
func (w *world) freeze(r *rand.Rand) {
	a, lasts := w.victim(r), w.lasts(r)
	a.frozen++
	life := a.life
	if a.alive {
		w.pauseFor(a, "its host FREEZES")
	}
	w.later(lasts, func() {
		if a.frozen--; a.frozen == 0 && a.disk.pending != nil {
			w.writtenIn(a, w.writeTime(a))
		}
		w.resume(a, life)
	})
}

// strikeBurst makes the whole network lose, repeat, reorder or delay messages.
func (w *world) strikeBurst(r *rand.Rand) {
	w.burst = burst{loss: pick(r, 0, 0.05, 0.3), repeat: pick(r, 0, 0.1, 0.5), reorder: pick(r, 0, 0.1, 0.5),
		slow: pick(r, 0, 0, w.plan.timing.Heartbeat, w.plan.timing.Lease/3, w.plan.timing.Lease)}
	w.note(nil, "NETWORK: %s", w.burst)
	w.later(w.lasts(r), func() {
		w.burst = burst{}
		w.note(nil, "NETWORK: as usual again")
	})
}

// uniform draws a duration up to that.
func (w *world) uniform(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

func (w *world) slowDisk(r *rand.Rand) {
	a := w.victim(r)
	w.note(a, "its disk is SLOW")
	a.disk.slow++
	w.later(w.lasts(r), func() { a.disk.slow-- })
}

func (w *world) failDisk(r *rand.Rand) {
	a := w.victim(r)
	w.note(a, "its disk FAILS")
	a.disk.failing++
	w.later(w.lasts(r), func() { a.disk.failing-- })
}

// retime changes a clock's rate, within the bound.
func (w *world) retime(r *rand.Rand) {
	a := w.victim(r)
	a.clock.retime(w.Now, w.drawRate(r))
	w.note(a, "its clock runs at %+d ppm", a.clock.ppm)
	if a.alive && a.paused == 0 && w.Wakes[a.id] != never {
		w.step(a, election.Tick{}) // its timer is set anew
	}
}

// drawRate draws how much faster than true time a clock runs: often as far off
// as it may.
func (w *world) drawRate(r *rand.Rand) int64 {
	return pick(r, -w.plan.drift, w.plan.drift, r.Int64N(2*w.plan.drift+1)-w.plan.drift)
}

// suspect makes an agent's gossip suspect or forget another for nothing.
func (w *world) suspect(r *rand.Rand) {
	a, b := w.anyone(r), w.victim(r)
	if a == b {
		return
	}
	w.note(a, "its gossip DOUBTS %s", b.peer)
	if chance(r, 0.5) {
		a.seen[b.id].member.Suspected = true
	} else {
		a.seen[b.id] = sighting{}
	}
	w.tellView(a)
	w.sight(a, b, w.lasts(r))
}
