package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// Here is what happens to programs whose agent has died: they resume, or they have ended.

// startProgram starts the host's program for a leadership.
func (w *world) startProgram(a *agent, l *contestLog, c *elector.ContestStatus) {
	w.programs++
	if p := l.find(program, c.Leader); p != nil && p.acting(w.Now) && w.plan.lives && w.plan.quorum {
		w.fail("K4d", "%s lets a program act in term %d of %s while the one of term %d acts on", a.peer, c.Term, l.name, p.term)
	}
	w.acts(l, actor{kind: program, host: a, epoch: a.clock.epoch, holder: c.Leader, term: c.Term, until: c.ValidUntil,
		number: w.programs, life: a.life})
	if p := l.find(program, c.Leader); p != nil {
		w.tell(l, p)
	}
	w.startAdding(a, l, c.Leader)
}

// tell records that a program was notified of a term, and checks that no other one was.
func (w *world) tell(l *contestLog, p *actor) {
	if !w.plan.lives || !w.plan.quorum {
		return
	}
	if other, told := l.told[p.term]; told && other != p.number {
		w.fail("K4d", "two programs of %s act in term %d of %s", p.host.peer, p.term, l.name)
	}
	l.told[p.term] = p.number
}

// goOn decides how the host's programs go on under the next life. Each resumes after a while,
// or has ended meanwhile, or never comes back and stops by the deadline that it knows.
func (w *world) goOn(a *agent, past *election.Past) {
	if past == nil || !a.alive {
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
		p := l.find(program, a.holder())
		switch {
		case p == nil, !p.acting(w.Now):
			w.inputLater(a, func() { w.dismiss(a, l) })
		case !w.deaths && chance(a.rng, 0.2): // its process has ended, and there is proof
			w.stopActing(p)
			w.inputLater(a, func() { w.dismiss(a, l) })
		default:
			if w.deaths || chance(a.rng, 0.7) {
				w.inputLater(a, func() { w.resumeProgram(a, l) })
			}
			w.awaitProgram(a, l)
		}
	}
}

// inputLater is like inputSoon, for an input that depends on the state at that time. While the
// agent is paused it is tried again, as programs try to resume.
func (w *world) inputLater(a *agent, run func()) {
	w.after(around(a.rng, w.plan.timing.Heartbeat/4), a.inLife(func() {
		switch {
		case !a.alive:
		case a.paused > 0:
			w.inputLater(a, run)
		default:
			run()
		}
	}))
}

// awaitProgram gives up a leadership whose program has not resumed by its deadline.
func (w *world) awaitProgram(a *agent, l *contestLog) {
	await := func() { w.awaitProgram(a, l) }
	p := l.find(program, a.holder())
	switch {
	case !a.alive || p != nil && p.life == a.life:
	case p != nil && p.acting(w.Now):
		w.after(time.Duration(a.clock.when(p.until)-w.Now), a.inLife(await))
	case a.paused > 0:
		w.inputLater(a, await)
	default:
		w.dismiss(a, l)
	}
}

// resumeProgram connects the program to the present life. If the program's term has ended, it
// is asked to stop.
func (w *world) resumeProgram(a *agent, l *contestLog) {
	self := a.holder()
	p := l.find(program, self)
	if p == nil || !p.acting(w.Now) || p.life == a.life {
		return
	}
	w.poll(a)
	p.life = a.life
	if c := a.leads(l.name); c != nil && c.Term >= p.term {
		w.stats.Resumed++
		w.poll(a)
		return
	}
	term := p.term
	w.after(around(a.rng, w.plan.timing.Heartbeat/2), func() {
		if p := l.find(program, self); p != nil && p.term == term && p.acting(w.Now) && a.frozen == 0 {
			w.stopActing(p)
			if a.holder() == self {
				w.input(a, election.Stopped{Election: l.name, Term: term})
			}
		}
	})
}

// dismiss gives up a leadership in which no program of the host acts any more. If no program
// was ever notified of the term, one begins to act instead.
func (w *world) dismiss(a *agent, l *contestLog) {
	w.poll(a)
	c := a.leads(l.name)
	if c == nil {
		return
	}
	if _, told := l.told[c.Term]; w.plan.quorum && (!told || w.options.careless == tellsTermsTwice) {
		w.startProgram(a, l, c)
		return
	}
	e := l.index
	s := &a.stand[e]
	remaining := 0
	if s.stands && chance(a.rng, 0.5) {
		remaining = s.priority
	}
	w.note(a, "nobody acts in term %d of %s any more", c.Term, l.name)
	w.input(a, election.Withdraw{Election: l.name, Remaining: remaining})
	if remaining == 0 && s.stands {
		w.inputLater(a, func() { w.standAgain(a, e) })
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
