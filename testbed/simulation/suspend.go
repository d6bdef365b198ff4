package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// suspend stops a whole host, as freeze does. If the clock counted that time too long or too
// short, the agent learns of the suspend before any other input. Otherwise it learns of it
// late, or it is notified of a suspend that did not happen.
func (w *world) suspend(r *rand.Rand) {
	a, lasts, late := w.victim(r), w.lasts(r), around(r, w.plan.timing.Heartbeat)
	how, part, over := r.IntN(4), r.Float64(), around(r, w.plan.timing.Lease)
	if !a.alive || how == 0 {
		w.note(a, "gets a SUSPEND that never was")
		w.input(a, election.Suspended{})
		return
	}
	life, epoch := a.life, a.clock.epoch
	a.frozen++
	w.pauseFor(a, "its host is SUSPENDED")
	w.later(lasts, func() {
		if a.frozen--; a.frozen == 0 && a.disk.pending != nil {
			w.writtenIn(a, w.writeTime(a))
		}
		if a.life != life {
			return
		}
		alone := a.alive && a.paused == 1 && a.clock.epoch == epoch
		switch {
		case how == 1: // counted right, and reported late
			w.resume(a, life)
			w.later(late, a.inLife(func() { w.input(a, election.Suspended{}) }))
			return
		case how == 2 && alone:
			w.miscount(a, -time.Duration(part*float64(lasts)*(1-float64(statedDrift)/million)))
		case alone:
			w.miscount(a, over)
		}
		a.suspended = true
		w.resume(a, life)
	})
}

// miscount sets a host's clock as if it had counted a suspend too long or, if by is negative,
// too short. If too short, programs stop here as if the clock were right. Real ones may act for
// longer, until the agent's next step; docs/guarantees.md states that limit.
func (w *world) miscount(a *agent, by time.Duration) {
	w.note(a, "its clock counts the suspend wrongly, by %v", by)
	a.clock.retime(w.Now, a.clock.ppm)
	a.clock.base = a.clock.base.Add(by)
	for _, l := range slices.Concat(w.logs, a.own) { // others may still name a leader by its former identity
		for i := range l.actors {
			if x := &l.actors[i]; by < 0 && x.host == a && x.epoch == a.clock.epoch {
				x.until = x.until.Add(by)
			}
		}
		for x, end := range l.ends {
			if end.host == a && end.epoch == a.clock.epoch {
				end.until = end.until.Add(by)
				l.ends[x] = end
			}
		}
	}
}
