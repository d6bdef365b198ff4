package simulation

import (
	"math/rand/v2"

	"github.com/doyen-election/doyen/election"
)

// hurryChange has an operator replace most voters while a leader is cut off. In the middle of
// the change the former voters are started again: they hold what they promised to that leader,
// and remember nothing else.
func (w *world) hurryChange(r *rand.Rand) {
	lead, at := w.numbered(r.IntN(w.plan.voters+w.plan.observers)), around(r, w.plan.timing.Heartbeat)
	if l := w.find(w.logs[r.IntN(len(w.logs)-1)].holder.Peer); l != nil {
		lead = l
	}
	asked, back, after := w.anyone(r), w.lasts(r)+w.plan.timing.Lease, w.plan.delay/2+around(r, 4*w.plan.delay+2*w.plan.write)
	roster := asked.disk.state.Roster
	if roster == nil || asked == lead || asked.own != nil || !roster.Has(asked.peer) || roster.Joint() {
		return
	}
	change := election.ChangeRoster{Request: w.request()}
	for _, i := range r.Perm(len(w.agents)) {
		switch b := w.agents[i]; {
		case roster.Has(b.peer) && chance(r, 0.7):
			change.Remove = append(change.Remove, b.peer)
		case !roster.Has(b.peer) && b != lead && b.own == nil:
			if _, named := roster.Named(b.name); !named {
				change.Add = append(change.Add, election.Voter{Name: b.name, Peer: b.peer})
			}
		}
	}
	if len(change.Add) == 0 {
		return
	}
	w.note(lead, "is CUT OFF")
	var pairs [][2]*agent
	for _, b := range w.agents {
		if b != lead {
			pairs = append(pairs, [2]*agent{lead, b})
		}
	}
	for _, p := range pairs {
		w.setCut(p[0], p[1], true, true, w.cut)
		w.hangUp(p[0], p[1], true)
	}
	w.later(back, func() {
		for _, p := range pairs {
			w.setCut(p[0], p[1], true, true, w.mend)
		}
	})
	w.later(at, func() {
		w.note(asked, "is asked to change the roster: %+v", change)
		w.input(asked, change)
		w.later(after, func() {
			for _, b := range w.agents {
				if b != lead && b != asked && roster.Has(b.peer) && b.alive && b.frozen == 0 {
					w.stop(b, true)
					w.start(b)
				}
			}
		})
	})
}
