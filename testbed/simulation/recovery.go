package simulation

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// deaths is how many leaders die after the faults.
const deaths = 3

// checkDeaths lets leaders die at any moment of a step while there are no faults, and come back
// with their record before their lease ends. Nothing else may change (G7): each leads on in the
// same term, no agent names another leader or none, and no program stops.
func (w *world) checkDeaths() {
	if w.violation != nil || !w.plan.lives || !w.plan.quorum || w.heal.agreedAt < 0 || w.rolledBack {
		return
	}
	w.deaths = true
	for range deaths {
		l := w.logs[w.rng.IntN(len(w.logs)-1)]
		a := w.find(l.holder.Peer)
		if w.handingOver() || a == nil || !a.alive || a.leads(l.name) == nil || w.disputed(a) {
			w.watch(w.Now + int64(w.plan.timing.Lease))
			continue
		}
		term, programs := a.leads(l.name).Term, w.acting(a)
		a.doom = &doom{steps: w.rng.IntN(12), done: w.rng.IntN(9), loud: true, lasts: around(w.rng, w.plan.timing.Lease/64)}
		w.watch(w.Now + 2*int64(w.plan.timing.Lease))
		if w.between() { // it took few steps, so that it died only now
			w.watch(w.Now + int64(w.plan.timing.Lease))
		}
		if w.violation != nil || w.handingOver() {
			return
		}
		if c := a.leads(l.name); c == nil || c.Term != term {
			w.fail("G7", "%s led %s in term %d, died, and was back at once: %+v", a.peer, l.name, term, c)
		}
		for i, p := range programs {
			if now := w.acting(a); i >= len(now) || now[i] != p {
				w.fail("G7", "the programs of %s did not go on under its next life: %v, and now %v", a.peer, programs, now)
			}
		}
	}
}

// acting returns the numbers of the programs that act on the host, in the order of elections.
func (w *world) acting(a *agent) []int {
	var all []int
	for _, l := range w.logsOf(a) {
		if p := l.find(program, a.holder()); p != nil && p.acting(w.Now) {
			all = append(all, p.number)
		}
	}
	return all
}

// disputed reports whether the agent is about to take a higher term although it has not died.
func (w *world) disputed(a *agent) bool {
	return a.past == nil || a.past.Lease != a.settings.timing.Lease || a.recorded(election.RosterElection).Term != 0
}

// between reports whether, after the faults, an agent is between two lives, or its newest life
// has just begun. Such an agent may not know the leaders of other elections yet.
func (w *world) between() bool {
	return w.deaths && slices.ContainsFunc(w.agents, func(a *agent) bool {
		return !a.alive || w.Now-a.born < 2*int64(w.plan.timing.Heartbeat)
	})
}

// reconnects reports whether a leader has died, and the agent has been connected to its next
// life for so short a time that its heartbeat may be on its way.
func (w *world) reconnects(a *agent, name election.Name) bool {
	l := w.log(a, name)
	if !w.deaths || l == nil {
		return false
	}
	b := w.find(l.holder.Peer)
	if b == nil || b == a {
		return false
	}
	for _, e := range w.conns[a.id][b.id].ends {
		if !e.told || w.Now-e.tellAt < int64(w.plan.timing.Heartbeat/2) {
			return true
		}
	}
	return false
}
