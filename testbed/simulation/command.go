package simulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/election"
)

func (w *world) request() election.RequestID {
	w.asked++
	return w.asked
}

func (w *world) contestOf(r *rand.Rand) (int, election.Name) {
	e := r.IntN(maxElections) % len(w.plan.elections)
	return e, w.plan.elections[e]
}

func (w *world) drain(r *rand.Rand) {
	a := w.victim(r)
	if !a.alive {
		return
	}
	w.setDrain(a, true)
	w.later(w.lasts(r), a.inLife(func() { w.setDrain(a, false) }))
}

func (w *world) setDrain(a *agent, on bool) {
	a.draining = on
	w.note(a, "is asked to drain: %v", on)
	w.input(a, election.Drain{On: on, Request: w.request()})
	w.advertise(a)
}

func (w *world) resign(r *rand.Rand) {
	_, name := w.contestOf(r)
	a := w.victim(r)
	w.note(a, "is asked to RESIGN %s", name)
	w.input(a, election.Resign{Election: name, Request: w.request()})
}

func (w *world) transfer(r *rand.Rand) {
	_, name := w.contestOf(r)
	to, a := w.anyone(r), w.victim(r)
	w.note(a, "is asked to TRANSFER %s to %s", name, to.peer)
	w.input(a, election.Transfer{Election: name, To: to.peer, Request: w.request()})
}

// reprioritize changes a candidate's priority. With priority 0 it never leads.
func (w *world) reprioritize(r *rand.Rand) {
	a := w.victim(r)
	e, name := w.contestOf(r)
	s := &a.stand[e]
	if !s.stands {
		return
	}
	priority := pick(r, 0, 50, 100, 200, 300)
	w.note(a, "is a candidate in %s with priority %d", name, priority)
	w.prioritize(a, e, priority)
}

// prioritize changes the priority of a candidacy. A candidacy with its own priority begins again with the new
// one. For any other candidacy, an operator changes the priority of the agent.
func (w *world) prioritize(a *agent, e, priority int) {
	s := &a.stand[e]
	if s.priority == priority {
		return
	}
	if s.stated {
		s.priority = priority
		a.call(func() {
			if a.programs[e].k != nil {
				a.stands(e)
			}
		})
		return
	}
	a.priority = priority
	for i := range a.stand {
		if !a.stand[i].stated {
			a.stand[i].priority = priority
		}
	}
	a.configure()
}

func (a *agent) configure() {
	a.call(func() {
		a.registry.Configure(a.clock.at(a.w.Now), actors.Settings{Priority: a.priority, Preempt: false, Needs: a.needs()})
	})
}

// withdraw ends one candidacy for a while or, as the failing check of a host does, all its candidacies.
func (w *world) withdraw(r *rand.Rand) {
	a := w.victim(r)
	e, _ := w.contestOf(r)
	if !a.stand[e].stands {
		return
	}
	lasts, all := w.lasts(r), r.IntN(4) == 0
	for i := range a.stand {
		s := &a.stand[i]
		if !s.stands || i != e && !all {
			continue
		}
		s.stands = false
		name := w.plan.elections[i]
		w.note(a, "is no longer a candidate in %s", name)
		a.call(func() {
			if !s.stands { // the candidacy has not begun again meanwhile
				a.leaves(i)
			}
		})
		w.later(lasts, func() { w.standAgain(a, i) })
	}
}

const (
	// maxShort bounds the short elections under way, so that agents always have room for other
	// elections.
	maxShort = 3
	// shortNames is how many names short elections have: more than an agent has room for.
	shortNames = 8 * maxShort
)

// holdShortElection makes two agents the only candidates in an election, and withdraws them soon.
// Agents must forget the election, but not its terms.
func (w *world) holdShortElection(r *rand.Rand) {
	a, b, lasts := w.victim(r), w.anyone(r), w.lasts(r)
	name := election.Name(fmt.Sprintf("short%d", r.IntN(shortNames)))
	if w.short >= maxShort {
		return
	}
	w.short++
	w.note(a, "and %s are candidates in %s", b.peer, name)
	for _, x := range []*agent{a, b} {
		w.input(x, election.Campaign{Election: name, Priority: election.DefaultPriority})
	}
	w.later(lasts, func() {
		for _, x := range []*agent{a, b} {
			w.input(x, election.Withdraw{Election: name})
		}
		// The election has ended when no message about it can arrive any more.
		w.later(4*w.plan.timing.Lease, func() { w.short-- })
	})
}

func (w *world) standAgain(a *agent, e int) {
	s := &a.stand[e]
	if !s.candidate {
		return
	}
	s.stands = true
	a.call(func() { a.candidateAgain(e) }) // an agent that is down becomes a candidate when it starts
}

// changeRoster asks any agent for a change of the voters: mostly of one voter, at times of so many that an
// old and a new majority may have no voter in common. It returns the change and the agent. If it asks for a
// revision instead, the agent is nil.
func (w *world) changeRoster(r *rand.Rand) (*agent, election.ChangeRoster) {
	a := w.victim(r)
	roster := a.disk.state.Roster
	if roster == nil || a.own != nil {
		return nil, election.ChangeRoster{}
	}
	if w.plan.revised && chance(r, 0.5) {
		return nil, w.revise(a, r)
	}
	share := pick(r, 0, 0, 0.4, 0.7)
	change := election.ChangeRoster{Request: w.request()}
	for _, i := range r.Perm(len(w.agents)) {
		b := w.agents[i]
		if in := roster.Has(b.peer); in && (chance(r, share) || share == 0 && len(change.Remove) == 0 && chance(r, 0.5)) {
			change.Remove = append(change.Remove, b.peer)
		} else if !in && (chance(r, share) || share == 0 && len(change.Add) == 0 && chance(r, 0.5)) {
			change.Add = append(change.Add, election.Voter{Name: b.name, Peer: b.peer})
			if v, named := roster.Named(b.name); named { // the roster has the name with an identity whose disk was lost
				change.Remove = append(change.Remove, v.Peer)
			}
		}
	}
	w.note(a, "is asked to change the roster: %+v", change)
	w.input(a, change)
	if chance(r, 0.3) {
		w.later(around(r, 2*w.plan.timing.Lease), func() { w.strikeCut(r) })
	}
	return a, change
}

func (w *world) inquire(r *rand.Rand) {
	_, name := w.contestOf(r)
	a, id := w.anyone(r), w.request()
	if !a.alive {
		return
	}
	l := w.log(a, name)
	w.inquiries[id] = inquiry{election: name, least: l.last, life: a.life}
	w.input(a, election.Inquire{Election: name, Request: id})
}
