package simulation

import (
	"github.com/doyen-election/doyen/election"
)

// pollEvery is how many steps pass between two looks at an agent's status that
// nothing else calls for. Nothing rests on it but G5: when somebody begins to
// lead, everybody else who led is looked at, and each when it stops or is
// stopped.
const pollEvery = 32

// step lets the agent handle one input now, and carries out what it asks for
// in the order of a real agent: withdraw, persist, send, announce.
func (w *world) step(a *agent, in election.Input) {
	if w.violation != nil || !a.alive {
		return
	}
	if a.doom != nil {
		if a.doom.steps--; a.doom.steps < 0 {
			w.stepAndDie(a, in)
			return
		}
	}
	local := a.clock.at(w.now)
	w.handling(in)
	out := a.elector.Step(local, in)
	w.stats.Steps++
	if w.trace.wanted() {
		w.trace.add(record{at: w.now, agent: a, life: a.life, local: local, in: in, out: out})
	}
	w.checkOutput(a, local, out)
	for _, x := range out.Withdraw {
		w.withdrawn(a, x)
	}
	if out.Persist != nil {
		w.write(a, out.Persist)
	}
	for _, m := range out.Send {
		w.checkSend(a, local, m)
		w.send(a, m)
	}
	w.wake(a, out.WakeAt)
	w.look(a, local)
	if len(out.Announce) > 0 || len(out.Withdraw) > 0 || w.stats.Steps%pollEvery == 0 || a.suspect() {
		w.stepping = a
		w.poll(a)
		w.stepping = nil
	}
	for _, x := range out.Announce {
		w.announced(a, local, x)
	}
	w.answered(out.Replies)
	if a.stopping && !a.ending && !a.elector.HandingOver() {
		a.ending = true
		life := a.life
		w.after(around(a.rng, w.plan.delay), func() {
			if a.life == life {
				w.stop(a, true)
			}
		})
	}
}

// wake wakes the agent when its clock reads that, or a little later.
func (w *world) wake(a *agent, at election.Instant) {
	a.wakeAt = a.clock.when(at)
	if a.wakeAt == never {
		return
	}
	a.wakeAt = max(a.wakeAt, w.now+1)
	if w.plan.late > 0 {
		a.wakeAt += int64(around(a.rng, w.plan.late))
	}
	if a.paused > 0 {
		a.wakeAt = never // resume sees to it
	}
}

// poll reads the agent's status like a reader of its socket.
func (w *world) poll(a *agent) {
	local := a.clock.at(w.now)
	a.contests = a.elector.Contests()
	for i := range a.contests {
		w.checkStatus(a, local, a.contests[i])
	}
	w.look(a, local)
	w.checkStepsDown(a)
}

// handling takes note of the message that the step under way handles.
func (w *world) handling(in election.Input) {
	w.handles = nil
	if r, ok := in.(election.Received); ok {
		w.handles = r.Message
	}
}

// look sees whether the agent leads the roster election.
func (w *world) look(a *agent, local election.Instant) {
	t, until := a.elector.Drives()
	w.checkDriving(a, local, t, until)
}

// stepAndDie takes a step and carries out only the first things that its
// output asks for; then the process is gone.
func (w *world) stepAndDie(a *agent, in election.Input) {
	d := a.doom
	a.doom = nil
	local := a.clock.at(w.now)
	w.handling(in)
	out := a.elector.Step(local, in)
	w.stats.Steps++
	w.note(a, "CRASHES in the middle of a step, on %s", describe(in))
	w.checkOutput(a, local, out)
	left := d.done
	does := func() bool { left--; return left >= 0 }
	for _, x := range out.Withdraw {
		if does() {
			w.withdrawn(a, x)
		}
	}
	if out.Persist != nil && does() {
		w.write(a, out.Persist)
	}
	for _, m := range out.Send {
		if does() {
			w.checkSend(a, local, m)
			w.send(a, m)
		}
	}
	w.stop(a, d.loud)
	w.later(d.lasts, func() { w.start(a) })
}
