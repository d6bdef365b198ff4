package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

// crash kills a process. Its kernel still shows everything that the process wrote.
func (w *world) crash(r *rand.Rand) {
	a := w.victim(r)
	loud, lasts := chance(r, 0.7), w.lasts(r)
	if !a.alive {
		return
	}
	w.stopFor(a, loud, false, lasts)
}

// stopFor kills a process and starts the next one after that time. If lost is true, the record is lost too.
func (w *world) stopFor(a *agent, loud, lost bool, lasts time.Duration) {
	w.stop(a, loud)
	if lost {
		w.loseRecord(a)
	}
	w.later(lasts, func() { w.start(a) })
}

// cutPower takes a whole host down, whether its agent runs or not. What was not synced may be lost,
// and the clock and the programs start again. Half of the time the agent is killed and restarted
// a little before that, and then answers according to what its former life wrote.
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
		a.companion.number, a.companion.k = 0, nil
		w.later(lasts, func() { w.start(a) })
	}
	if chance(r, 0.5) || !a.alive {
		cut()
		return
	}
	a.doom = &doom{steps: 1 + r.IntN(12), done: r.IntN(5), loud: loud, lasts: around(r, w.plan.timing.Heartbeat)}
	w.later(after, cut)
}

// damageDisk corrupts a state file while its agent is down. The agent must refuse to start, and
// must not change the file. Later an operator restores it.
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

// crashInStep kills a process while it carries out the output of one of its next steps.
func (w *world) crashInStep(r *rand.Rand) {
	a := w.victim(r)
	if a.alive {
		a.doom = &doom{steps: 1 + r.IntN(12), done: r.IntN(5), loud: chance(r, 0.7), lasts: w.lasts(r)}
	}
}

// shutdown stops a process in the clean way, and starts it again.
func (w *world) shutdown(r *rand.Rand) {
	a := w.victim(r)
	w.leaveFor(a, 2*w.plan.timing.Lease+w.lasts(r))
}

// leave is a shutdown for a long time. The other agents go on without this one.
func (w *world) leave(r *rand.Rand) {
	a := w.victim(r)
	w.leaveFor(a, 8*w.plan.timing.Lease+around(r, 8*w.plan.timing.Lease))
}

func (w *world) leaveFor(a *agent, away time.Duration) {
	stop := a.inLife(func() { w.stop(a, true) }) // in case it has not ended by itself, or is paused
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

// freeze stops a whole host for a while, with its disk and its programs. The clock counts on,
// as CLOCK_BOOTTIME does during a suspend.
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

// retime changes the rate of a clock, within the drift.
func (w *world) retime(r *rand.Rand) {
	a := w.victim(r)
	a.clock.retime(w.Now, w.drawRate(r))
	w.note(a, "its clock runs at %+d ppm", a.clock.ppm)
	if a.alive && a.paused == 0 && w.Wakes[a.id] != never {
		w.step(a, election.Tick{}) // the step sets its timer again
	}
}

// drawRate draws how much faster than true time a clock runs. Often it is as far off as it may
// be.
func (w *world) drawRate(r *rand.Rand) int64 {
	return pick(r, -w.plan.drift, w.plan.drift, r.Int64N(2*w.plan.drift+1)-w.plan.drift)
}

// suspect makes one agent's gossip suspect or forget another agent without a reason.
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

// suspend stops a whole host, as freeze does. If the clock then counts too much or too little of that time,
// the agent learns of the suspend before any other input. If the clock counts right, the agent may learn of
// the suspend late. At times the host runs on, and the agent is notified of a suspend that did not happen.
func (w *world) suspend(r *rand.Rand) {
	a, lasts, late := w.victim(r), w.lasts(r), around(r, w.plan.timing.Heartbeat)
	how, part, over := r.IntN(4), r.Float64(), around(r, w.plan.timing.Lease)
	if !a.alive || how == 0 {
		w.note(a, "gets a SUSPEND that never was")
		w.input(a, election.Suspended{})
		return
	}
	life, epoch := a.life, a.clock.epoch
	a.frozen++
	w.pauseFor(a, "its host is SUSPENDED")
	w.later(lasts, func() {
		if a.frozen--; a.frozen == 0 && a.disk.pending != nil {
			w.writtenIn(a, w.writeTime(a))
		}
		if a.life != life {
			return
		}
		alone := a.alive && a.paused == 1 && a.clock.epoch == epoch
		switch {
		case how == 1: // the clock counted right, and the report is late
			w.resume(a, life)
			w.later(late, a.inLife(func() { w.input(a, election.Suspended{}) }))
			return
		case how == 2 && alone:
			w.miscount(a, -time.Duration(part*float64(lasts)*(1-float64(statedDrift)/million)))
		case alone:
			w.miscount(a, over)
		}
		a.suspended = true
		w.resume(a, life)
	})
}

// miscount moves a host's clock forward by the given time, as if the clock had counted too much of a suspend.
// A negative time moves it back. Programs then stop as if the clock were right. Real ones may act for longer,
// until the agent's next step; docs/guarantees.md states that limit.
func (w *world) miscount(a *agent, by time.Duration) {
	w.note(a, "its clock counts the suspend wrongly, by %v", by)
	a.clock.retime(w.Now, a.clock.ppm)
	a.clock.base = a.clock.base.Add(by)
	for _, l := range slices.Concat(w.logs, a.own) { // others may still name a leader by its former identity
		for i := range l.actors {
			if x := &l.actors[i]; by < 0 && x.host == a && x.epoch == a.clock.epoch {
				x.until = x.until.Add(by)
			}
		}
		for x, end := range l.ends {
			if end.host == a && end.epoch == a.clock.epoch {
				end.until = end.until.Add(by)
				l.ends[x] = end
			}
		}
	}
}

// strikeCut cuts some agents off from others: one agent, a pair, or a group. The cut has one
// direction or both. It either closes the connections at once, or agents notice it later.
func (w *world) strikeCut(r *rand.Rand) {
	in := make([]bool, len(w.agents))
	switch r.IntN(3) {
	case 0:
		in[w.victim(r).id] = true
	case 1:
		if a, b := w.victim(r), w.anyone(r); a != b {
			w.cutPairs(r, [][2]*agent{{a, b}})
		}
		return
	default:
		for i := range in {
			in[i] = chance(r, 0.5)
		}
	}
	w.cutPairs(r, crossing(w.agents, func(a *agent) bool { return in[a.id] }))
}

// crossing returns all pairs of an agent on that side and an agent on the other side.
func crossing(agents []*agent, side func(*agent) bool) (all [][2]*agent) {
	for _, a := range agents {
		for _, b := range agents {
			if side(a) && !side(b) {
				all = append(all, [2]*agent{a, b})
			}
		}
	}
	return all
}

func (w *world) cutPairs(r *rand.Rand, pairs [][2]*agent) {
	loud := chance(r, 0.4)
	there, back := true, true
	if !loud {
		there = pick(r, true, true, false)
		back = !there || r.IntN(2) == 0
	}
	noticed := w.lasts(r) // by a keep-alive, unless the cut heals earlier
	if len(pairs) > 0 {
		w.note(nil, "CUT %s, %s", direction(pairs, there, back), loudly(loud))
	}
	for _, p := range pairs {
		a, b := p[0], p[1]
		setCut(a, b, there, back, w.cut)
		if loud {
			w.hangUp(a, b, true)
		} else {
			w.later(noticed, func() {
				if !w.joined(a, b) {
					w.hangUp(a, b, true)
				}
			})
		}
		w.sight(a, b, w.rumourTime())
		w.sight(b, a, w.rumourTime())
	}
	w.later(w.lasts(r), func() {
		if len(pairs) > 0 {
			w.note(nil, "MEND %s", direction(pairs, there, back))
		}
		for _, p := range pairs {
			setCut(p[0], p[1], there, back, w.mend)
			w.sight(p[0], p[1], w.rumourTime())
			w.sight(p[1], p[0], w.rumourTime())
		}
	})
}

// direction describes between which agents a cut loses messages, and in which direction.
func direction(pairs [][2]*agent, there, back bool) string {
	var from, to []string
	for _, p := range pairs {
		from, to = append(from, string(p[0].peer)), append(to, string(p[1].peer))
	}
	slices.Sort(from)
	slices.Sort(to)
	left, right := strings.Join(slices.Compact(from), " "), strings.Join(slices.Compact(to), " ")
	switch {
	case there && back:
		return left + " <-> " + right
	case there:
		return left + " -> " + right
	}
	return right + " -> " + left
}

func setCut(a, b *agent, there, back bool, set func(a, b *agent)) {
	if there {
		set(a, b)
	}
	if back {
		set(b, a)
	}
}

// strikeHangUp closes connections for no reason. Agents dial again.
func (w *world) strikeHangUp(r *rand.Rand) {
	a := w.victim(r)
	loud := chance(r, 0.8)
	w.note(a, "loses connections, loud=%v", loud)
	for _, b := range w.agents {
		if chance(r, 0.5) && b != a {
			w.hangUp(a, b, loud)
		}
	}
}
