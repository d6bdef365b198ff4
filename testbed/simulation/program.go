package simulation

import (
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// announced lets what acts on the host begin when its agent leads. It checks G2: the term
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
	a.lead(local, x)
	l.highest = max(l.highest, x.Term)
	if w.plan.lives && x.Term == l.last && self == l.holder {
		return // the next life leads on
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
	i := slices.IndexFunc(a.contests, func(c *elector.ContestStatus) bool { return c.Election == x.Election })
	if w.plan.quorum && (i < 0 || a.contests[i].Leader != (election.Holder{}) && (a.contests[i].Leader != self || local >= a.contests[i].ValidUntil)) {
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

// withdrawn has the host's program stop. Either it does, and gives its receipt, or it acts on until
// the last deadline that it knows.
func (w *world) withdrawn(a *agent, x election.Withdrawal) {
	w.heal.withdrawn(w, x)
	switch x.Reason {
	case election.ReasonDisk:
		w.stats.Stuck++
	case election.ReasonLate:
		w.stats.Late++
	}
	if l := w.log(a, x.Election); l != nil {
		l.extend(a, x.Term, x.StopBy)
	}
	a.registry.Withdraw(x, nil)
}
