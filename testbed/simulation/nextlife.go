package simulation

import (
	"math/rand/v2"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// beginsLeading takes in what the next life leads from its first instant on.
func (w *world) beginsLeading(a *agent, past *election.Past) {
	if past == nil {
		return
	}
	w.poll(a)
	w.checkGoesOn(a, past)
	logs := w.logsOf(a)
	for _, l := range logs[:len(logs)-1] {
		if c := a.leads(l.name); c != nil && c.Term > l.last { // the former life did not announce this term
			w.checkTerm(a, l, election.Announcement{Election: l.name, Term: c.Term}, a.holder())
			l.highest = max(l.highest, c.Term)
		}
	}
}

// leads returns the agent's last polled status of the election if it leads there, else nil.
func (a *agent) leads(name election.Name) *elector.ContestStatus {
	for _, c := range a.contests {
		if c.Election == name && c.State == elector.Leading && c.Leader == a.holder() {
			return c
		}
	}
	return nil
}

// checkGoesOn checks that the next life leads what is on record from its first instant on (K4a,
// G7).
func (w *world) checkGoesOn(a *agent, past *election.Past) {
	if !w.plan.quorum || w.rolledBack || a.suspect() || past.Lease != a.settings.timing.Lease {
		return
	}
	local := a.clock.at(w.Now)
	for _, row := range past.Rows {
		l := w.log(a, row.Election)
		if l == nil || row.Term == 0 || row.Ending.Reason != "" || row.Election == election.RosterElection {
			continue
		}
		if row.Until.Sub(local) < past.Lease/4 || !a.stand[l.index].stands {
			continue
		}
		if !a.disk.state.Roster.Allows(row.Election, a.peer, a.stand[l.index].priority) {
			continue // it hands over, as the former life was about to
		}
		w.stats.Carried++
		if c := a.leads(row.Election); c == nil || c.Term < row.Term {
			w.fail("G7", "the next life of %s does not lead %s as is on record (%+v): %+v", a.peer, row.Election, row, c)
		}
	}
}

// perish kills a process, at once or in the middle of a step's output. The next life begins
// soon, mostly with the record.
func (w *world) perish(r *rand.Rand) {
	a := w.victim(r)
	lease := w.plan.timing.Lease
	lasts := pick(r, 0, around(r, w.plan.timing.Heartbeat/10), around(r, w.plan.timing.Heartbeat), around(r, lease/2), w.uniform(r, 2*lease))
	d := doom{steps: r.IntN(12), done: r.IntN(9), loud: chance(r, 0.9), lost: chance(r, 0.15), lasts: lasts}
	if !a.alive {
		return
	}
	if chance(r, 0.7) {
		a.doom = &d
		return
	}
	w.stop(a, d.loud)
	if d.lost {
		w.loseRecord(a)
	}
	w.later(lasts, func() { w.start(a) })
}

// upgrade starts all agents again, one after the other, as `doyen restart` does.
func (w *world) upgrade(r *rand.Rand) {
	at := around(r, w.plan.timing.Heartbeat)
	for _, i := range r.Perm(len(w.agents)) {
		a, down := w.agents[i], around(r, w.plan.timing.Heartbeat/4)
		w.later(at, func() {
			if a.alive && a.paused == 0 {
				w.stop(a, true)
				w.later(down, func() { w.start(a) })
			}
		})
		at += around(r, w.plan.timing.Lease/2)
	}
}

// hang stops a process as a deadlock does. Its keeper kills it and starts the next life.
func (w *world) hang(r *rand.Rand) {
	a, down := w.victim(r), around(r, w.plan.timing.Heartbeat/10)
	if !a.alive {
		return
	}
	w.pauseFor(a, "HANGS")
	w.later(min(3*w.plan.timing.Heartbeat, w.plan.timing.Lease/3), a.inLife(func() {
		if a.frozen == 0 {
			w.stop(a, true)
			w.later(down, func() { w.start(a) })
			return
		}
		w.later(w.plan.timing.Lease, a.inLife(func() { w.stop(a, true); w.start(a) }))
	}))
}
