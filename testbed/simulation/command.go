package simulation

import (
	"github.com/doyen-election/doyen/election"
)

// request numbers the next command.
func (w *world) request() election.RequestID {
	w.asked++
	return w.asked
}

// contestOf draws an election of the plan.
func (w *world) contestOf() (int, election.Name) {
	e := w.rng.IntN(len(w.plan.elections))
	return e, w.plan.elections[e]
}

func (w *world) drain() {
	a := w.victim()
	if !a.alive {
		return
	}
	w.setDrain(a, true)
	life := a.life
	w.later(w.lasts(), func() {
		if a.life == life {
			w.setDrain(a, false)
		}
	})
}

func (w *world) setDrain(a *agent, on bool) {
	a.draining = on
	w.input(a, election.Drain{On: on, Request: w.request()})
	w.advertise(a)
}

func (w *world) resign() {
	_, name := w.contestOf()
	w.input(w.victim(), election.Resign{Election: name, Request: w.request()})
}

func (w *world) transfer() {
	_, name := w.contestOf()
	to := w.agents[w.rng.IntN(len(w.agents))]
	w.input(w.victim(), election.Transfer{Election: name, To: to.peer, Request: w.request()})
}

// reprioritize changes a candidate's priority; 0 never leads.
func (w *world) reprioritize() {
	a := w.victim()
	e, name := w.contestOf()
	s := &a.stand[e]
	if !s.stands {
		return
	}
	s.priority = pick(w.rng, 0, 50, 100, 200, 300)
	w.input(a, election.Campaign{Election: name, Priority: s.priority})
	w.advertise(a)
}

// withdraw ends a candidacy for a while.
func (w *world) withdraw() {
	a := w.victim()
	e, name := w.contestOf()
	s := &a.stand[e]
	if !s.stands {
		return
	}
	s.stands = false
	w.input(a, election.Withdraw{Election: name})
	w.advertise(a)
	w.later(w.lasts(), func() { w.standAgain(a, e) })
}

func (w *world) standAgain(a *agent, e int) {
	s := &a.stand[e]
	if !s.candidate {
		return
	}
	s.stands = true
	if !a.alive {
		return // it will, when it starts
	}
	w.input(a, election.Campaign{Election: w.plan.elections[e], Priority: s.priority})
	w.advertise(a)
}

// changeRoster asks any agent for a change: mostly of one voter, at times of
// so many that the old and the new majorities share nobody.
func (w *world) changeRoster() {
	a := w.victim()
	roster := a.disk.state.Roster
	if roster == nil {
		return
	}
	share := pick(w.rng, 0, 0, 0.4, 0.7)
	change := election.ChangeRoster{Request: w.request()}
	for _, i := range w.rng.Perm(len(w.agents)) {
		b := w.agents[i]
		if in := roster.Has(b.peer); in && (w.chance(share) || share == 0 && len(change.Remove) == 0 && w.chance(0.5)) {
			change.Remove = append(change.Remove, b.peer)
		} else if !in && (w.chance(share) || share == 0 && len(change.Add) == 0 && w.chance(0.5)) {
			change.Add = append(change.Add, election.Voter{Name: b.name, Peer: b.peer})
		}
	}
	w.note(a, "is asked to change the roster: %+v", change)
	w.input(a, change)
	if w.chance(0.3) {
		w.later(w.around(2*w.plan.timing.Lease), w.strikeCut)
	}
}
