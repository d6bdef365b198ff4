package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
)

// strandChange asks for a change of the voters. At some moment of the change it stops the new
// voters for a long time, and at times also the agent that was asked. Later an operator asks
// two agents to cancel the change.
func (w *world) strandChange(r *rand.Rand) {
	lease := w.plan.timing.Lease
	asked, change := w.changeRoster(r)
	for _, v := range change.Add {
		w.strand(r, v.Peer, around(r, pick(r, lease/20, lease/4, lease)), 6*lease)
	}
	if asked != nil && chance(r, 0.4) {
		w.strand(r, asked.peer, around(r, pick(r, lease/20, lease/4, 2*lease)), lease)
	}
	for range 2 {
		at := around(r, 3*lease)
		to := w.anyone(r)
		w.later(at, func() {
			w.note(to, "is asked to CANCEL the change of the roster")
			w.input(to, election.ChangeRoster{Cancel: true, Request: w.request()})
		})
	}
}

// strand stops an agent after a while, and starts it again after another while.
func (w *world) strand(r *rand.Rand, id election.PeerID, after, mean time.Duration) {
	lasts := around(r, mean)
	w.later(after, func() {
		for _, a := range w.agents {
			if a.peer != id || !a.alive {
				continue
			}
			w.stop(a, true)
			w.note(a, "is STRANDED")
			w.later(lasts, func() { w.start(a) })
		}
	})
}
