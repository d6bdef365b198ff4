package simulation

import (
	"github.com/doyen-election/doyen/election"
)

// announced lets the host's program begin to act when its agent leads. It checks G2: the term
// of each leadership is above all earlier ones.
func (w *world) announced(a *agent, local election.Instant, x election.Announcement) {
	l := w.log(a, x.Election)
	if l == nil {
		w.checkShort(a, x)
		return
	}
	self := a.holder()
	w.observe(a, x)
	w.announcing(a, x)
	w.heal.changed = true
	if x.Leader != self || x.Event != election.Leading && x.Event != election.NewTerm {
		return
	}
	l.highest = max(l.highest, x.Term)
	if w.plan.lives && x.Term == l.last && self == l.holder {
		return // the next life leads on: goOn handles its program
	}
	w.checkTerm(a, l, x, self)
	if x.Event == election.NewTerm {
		w.stats.Overtaken++
		return
	}
	w.stats.Leaderships++
	if n := w.options.blind; n > 0 && w.stats.Leaderships > n && w.stats.Cut > 0 {
		w.fail("blind", "%s leads %s in term %d", self, x.Election, x.Term)
	}
	if x.Election == election.RosterElection {
		return
	}
	for _, c := range a.contests {
		if c.Election == x.Election && c.Leader == self && local < c.ValidUntil {
			w.startProgram(a, l, c)
			return
		}
	}
	if w.plan.quorum && !w.withdrew(a, l) {
		w.fail("H5", "%s announces that it leads %s in term %d, but its status does not say so", a.peer, x.Election, x.Term)
	}
}

// checkShort checks G2 in a short election, which agents may have forgotten since somebody led
// it.
func (w *world) checkShort(a *agent, x election.Announcement) {
	if x.Event != election.Leading || !w.plan.quorum || a.own != nil {
		return
	}
	w.stats.Short++
	if last := w.shorts[x.Election]; x.Term <= last {
		w.fail("G2", "%s leads %s in term %d, after term %d", a.peer, x.Election, x.Term, last)
	}
	w.shorts[x.Election] = x.Term
}

// withdrew reports whether a leadership that was announced in this step has ended by the end of
// the same step.
func (w *world) withdrew(a *agent, l *contestLog) bool {
	for _, c := range a.contests {
		if w.log(a, c.Election) == l {
			return c.Leader == (election.Holder{})
		}
	}
	return false
}

func (w *world) checkTerm(a *agent, l *contestLog, x election.Announcement, self election.Holder) {
	if !w.plan.quorum {
		return
	}
	if x.Term <= l.last {
		w.fail("G2", "%s leads %s in term %d, after %s in term %d", self, x.Election, x.Term, l.holder, l.last)
	}
	if h, ok := l.owners[x.Term]; ok && h != self {
		w.fail("G2", "%s leads %s in term %d, which %s had", self, x.Election, x.Term, h)
	}
	if before := w.find(l.holder.Peer); before != nil && before != a && before.alive && before.boot == l.holder.Lineage &&
		(before.paused > 0 || !w.joined(a, before)) {
		w.stats.Cut++
	}
	l.last, l.holder, l.owners[x.Term] = x.Term, self, self
}

// withdrawn asks the host's program to stop. Either the program does so after a while, and the
// agent gets a receipt, or it acts on until the last deadline that it knows.
func (w *world) withdrawn(a *agent, x election.Withdrawal) {
	w.heal.withdrawn(w, x)
	switch x.Reason {
	case election.ReasonDisk:
		w.stats.Stuck++
	case election.ReasonLate:
		w.stats.Late++
	}
	l := w.log(a, x.Election)
	if l == nil { // no program acts in a short election
		w.inputSoon(a, election.Stopped{Election: x.Election, Term: x.Term})
		return
	}
	l.extend(a, x.Term, x.StopBy)
	if !chance(a.rng, w.plan.heeds) {
		return
	}
	self := a.holder()
	life, epoch := a.life, a.clock.epoch
	if p := l.find(program, self); p != nil && p.life != life && p.acting(w.Now) {
		return // the program is notified when it resumes
	}
	w.after(around(a.rng, w.plan.timing.Heartbeat/2), func() {
		if epoch != a.clock.epoch || a.frozen > 0 { // the program is gone, or acts on when its host thaws
			return
		}
		if p := l.find(program, self); p != nil && p.term <= x.Term {
			w.stopActing(p)
		}
		if a.life == life || a.holder() == self && chance(a.rng, 0.5) {
			w.input(a, election.Stopped{Election: x.Election, Term: x.Term})
		}
	})
}
