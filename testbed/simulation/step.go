package simulation

import (
	"cmp"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
	"github.com/doyen-election/doyen/testbed/messages"
)

// pollEvery: after each such number of steps in the world, the agent that took the last one is polled. Only
// G5 needs these polls. For the other rules, all agents that led are polled when one begins to lead, and each
// agent is polled when it stops or is paused.
const pollEvery = 32

// step lets the agent handle one input now, and carries out what its output asks for.
func (w *world) step(a *agent, in election.Input) {
	if w.doubt(a, in); w.violation != nil || !a.alive {
		return
	}
	d := a.doom
	dies := d != nil && d.steps == 0
	if d != nil {
		d.steps--
	}
	local := a.clock.at(w.Now)
	if _, woke := in.(election.Suspended); dies && w.plan.lives && !woke { // after a suspend, the clock may be wrong
		w.poll(a) // to see what its status showed before this step
	}
	received, _ := in.(election.Received)
	w.handles = received.Message
	out := a.elector.Step(local, in)
	w.stats.Steps++
	switch {
	case dies:
		w.note(a, "CRASHES in the middle of a step, on %s", messages.Describe(in))
	case w.options.Live != nil:
		w.trace(a, messages.Describe(in)+messages.Output(out))
	}
	w.checkOutput(a, local, out)
	if dies {
		w.die(a, local, out)
		return
	}
	for action := range virtual.Actions(&out) {
		w.act(a, local, action)
		if _, wake := action.(election.Instant); wake { // all messages are sent, and nothing is announced yet
			w.look(a, local)
			if len(out.Announce) > 0 || len(out.Withdraw) > 0 || w.stats.Steps%pollEvery == 0 || a.suspect() ||
				out.Record != nil && w.plan.lives {
				w.stepping = a
				w.poll(a)
				w.stepping = nil
			}
		}
	}
	w.answered(out.Replies)
	a.turn()
	if a.stopping && !a.ending && !a.elector.HandingOver() {
		a.ending = true
		w.after(around(a.rng, w.plan.delay), a.inLife(func() { w.stop(a, true) }))
	}
}

func (w *world) act(a *agent, local election.Instant, action any) {
	switch x := action.(type) {
	case *election.LifeRecord:
		w.record(a, x)
	case virtual.Publish:
		a.unseen = false
		a.registry.Advance(local)
	case election.Withdrawal:
		w.withdrawn(a, x)
	case *election.Persist:
		a.late.writing = local
		w.write(a, x)
	case election.Envelope:
		w.checkSend(a, local, x)
		w.send(a, x)
	case election.PeerID:
		w.redials(a, x)
	case election.Instant:
		w.wake(a, min(x, a.registry.WakeAt()))
	case election.Announcement:
		w.announced(a, local, x)
	}
}

// die carries out only the first actions of an output. Then the process dies.
func (w *world) die(a *agent, local election.Instant, out election.Output) {
	d := a.doom
	a.doom = nil
	left := d.done
	a.unseen, a.dying = w.plan.lives, true
	for action := range virtual.Actions(&out) {
		if _, sent := action.(election.Instant); sent || left == 0 {
			break
		}
		if !w.plan.lives && beforeAll(action) {
			continue
		}
		left--
		w.act(a, local, action)
	}
	a.dying = false
	w.stop(a, d.loud)
	if d.lost {
		w.loseRecord(a)
	}
	start := func() { w.start(a) }
	if w.deaths {
		w.after(d.lasts, start)
		return
	}
	w.later(d.lasts, start)
}

// wake wakes the agent when its clock reads that instant, or a little later.
func (w *world) wake(a *agent, at election.Instant) {
	a.late.due = at
	w.Wakes[a.id] = a.clock.when(at)
	if w.Wakes[a.id] == never {
		return
	}
	w.Wakes[a.id] = max(w.Wakes[a.id], w.Now+1)
	if w.plan.late > 0 {
		w.Wakes[a.id] += int64(around(a.rng, w.plan.late))
	}
	if a.paused > 0 {
		w.Wakes[a.id] = never // resume sends a Tick
	}
}

// poll reads the agent's status, as a reader of its socket does.
func (w *world) poll(a *agent) {
	local := a.clock.at(w.Now)
	a.contests = a.elector.Contests()
	for i := range a.contests {
		w.checkStatus(a, local, a.contests[i])
	}
	w.endUnlisted(a)
	w.look(a, local)
	w.checkStepsDown(a)
	if a.registry != nil {
		a.prolong()
	}
}

// look reads whether the agent leads the roster election, and records it.
func (w *world) look(a *agent, local election.Instant) {
	t, until := a.elector.Drives()
	w.checkDriving(a, local, t, until)
}

// checkDriving records whether the agent leads the roster election. No status shows that, and if
// no peer is connected, no Heartbeat or Release shows it either.
func (w *world) checkDriving(a *agent, local election.Instant, t election.Term, until election.Instant) {
	l := w.log(a, election.RosterElection)
	self := a.holder()
	if t > 0 && local < until {
		w.acts(l, actor{kind: claimer, host: a, epoch: a.clock.epoch, holder: self, term: t, until: until})
		return
	}
	w.stopActing(l.find(claimer, self))
}

// lateness has instants, on the agent's own clock, that show whether the agent is behind.
type lateness struct {
	due     election.Instant // when the agent wants to wake; Never: it does not, or the instant is not known
	writing election.Instant // when the write under way was asked for; Never: there is none
	told    election.Instant // when the elector was last notified
}

// doubt notifies an agent by how much it is behind, as a real agent's loop does.
func (w *world) doubt(a *agent, in election.Input) {
	l := &a.late
	switch in.(type) {
	case election.Suspended:
		return // a real loop reports the suspend before it doubts
	case election.Persisted, election.PersistFailed:
		defer func() { l.writing = election.Never }()
	}
	now, worth := a.clock.at(w.Now), cmp.Or(a.disk.state.Roster.Lease(), a.settings.timing.Lease)/8
	by := max(now.Sub(l.due), now.Sub(l.writing))
	if !a.alive || by <= worth || now.Sub(l.told) < worth {
		return
	}
	l.told = now
	w.step(a, election.Late{By: by})
}
