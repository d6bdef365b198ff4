package simulation

import (
	"github.com/doyen-election/doyen/election"
)

// pollEvery is how many steps pass, on average, between two looks at an
// agent's status that nothing else calls for.
const pollEvery = 4

// step lets the agent handle one input now, and carries out what it asks for
// in the order of a real agent: withdraw, persist, send, announce.
func (w *world) step(a *agent, in election.Input) {
	if w.violation != nil || !a.alive {
		return
	}
	local := a.clock.at(w.now)
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
	w.schedule(a, out.WakeAt)
	if len(out.Announce) > 0 || len(out.Withdraw) > 0 || w.rng.IntN(pollEvery) == 0 {
		w.poll(a)
	}
	for _, x := range out.Announce {
		w.announced(a, local, x)
	}
	if a.stopping && !a.ending && !a.elector.HandingOver() {
		a.ending = true
		life := a.life
		w.after(w.around(w.plan.delay), func() {
			if a.life == life {
				w.stop(a, true)
			}
		})
	}
}

// schedule wakes the agent when its clock reads that, or a little later.
func (w *world) schedule(a *agent, at election.Instant) {
	a.wakeAt = a.clock.when(at)
	if a.wakeAt == never {
		return
	}
	a.wakeAt = max(a.wakeAt, w.now+1)
	if w.plan.late > 0 {
		a.wakeAt += int64(w.around(w.plan.late))
	}
	if a.paused > 0 {
		a.wakeAt = never // resume sees to it
	}
}

// poll reads the agent's status like a reader of its socket.
func (w *world) poll(a *agent) {
	local := a.clock.at(w.now)
	a.contests = a.elector.Status(local).Contests
	for _, c := range a.contests {
		w.checkStatus(a, local, c)
	}
}
