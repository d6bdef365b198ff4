package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// bury ends a process that can't begin another life. Its keeper waits until no program of the
// lineage acts, destroys the record, and reveals the lineage's secret (K5, K6). Later the agent
// starts again, as another holder.
func (w *world) bury(r *rand.Rand) {
	a, killed, lasts := w.victim(r), chance(r, 0.5), w.lasts(r)
	if !a.alive || a.past == nil || a.frozen > 0 {
		return
	}
	w.stop(a, true)
	if a.past == nil {
		w.later(lasts, func() { w.start(a) })
		return
	}
	for _, l := range w.logsOf(a) {
		if p := l.find(program, a.holder()); p != nil && killed {
			w.stopActing(p) // the program died with its agent, and the keeper has seen that
		}
	}
	w.note(a, "can't START again, and its keeper waits for those who act")
	w.awaitEnd(r, a, a.life, lasts)
}

func (w *world) awaitEnd(r *rand.Rand, a *agent, life uint32, lasts time.Duration) {
	switch {
	case a.alive || a.life != life || a.past == nil:
		return // an operator has started it after all, or the host was rebooted
	case a.frozen > 0 || !w.allDone(a) && w.options.careless != revealsEarly:
		w.later(w.plan.timing.Heartbeat/4, func() { w.awaitEnd(r, a, life, lasts) })
		return
	}
	w.note(a, "its record is destroyed, and its secret REVEALED")
	o := election.Obituary{Peer: a.peer, Lineage: a.boot, Secret: a.secret}
	w.endStatusClaims(a, w.logsOf(a))
	if w.options.careless != goesOnAfterReveal {
		a.past = nil
	}
	w.stats.Obituaries++
	w.obituaries = append(w.obituaries, o)
	for _, b := range w.agents {
		w.sendObituary(r, a, b, o)
	}
	w.later(lasts, func() { w.start(a) })
}

// allDone reports whether no program of the agent's lineage acts any more.
func (w *world) allDone(a *agent) bool {
	return !slices.ContainsFunc(w.logsOf(a), func(l *contestLog) bool {
		p := l.find(program, a.holder())
		return p != nil && p.acting(w.Now)
	})
}

// sendObituary sends the obituary to one agent, as datagrams: none, one or two arrive, at times
// late.
func (w *world) sendObituary(r *rand.Rand, a, b *agent, o election.Obituary) {
	for range pick(r, 0, 1, 1, 1, 2) {
		w.after(around(r, pick(r, w.plan.delay, w.plan.delay, w.plan.timing.Lease, 4*w.plan.timing.Lease)), func() {
			if a == b || w.joined(a, b) {
				w.input(b, election.Received{From: o.Peer, Message: o})
			}
		})
	}
}

// forge sends an obituary of an agent without the secret of its lineage: with another secret,
// or as a repetition of an earlier obituary.
func (w *world) forge(r *rand.Rand) {
	a, from, b := w.victim(r), w.anyone(r), w.anyone(r)
	o := election.Obituary{Peer: a.peer, Lineage: a.boot}
	switch how := r.IntN(3); {
	case how == 0:
		o.Secret[0] = byte(r.IntN(256))
	case len(w.obituaries) == 0:
	case how == 1:
		o.Secret = w.obituaries[r.IntN(len(w.obituaries))].Secret
		if a.past != nil && o.Secret == a.secret {
			return
		}
	default:
		o = w.obituaries[r.IntN(len(w.obituaries))]
	}
	w.sendObituary(r, from, b, o)
	w.sendObituary(r, from, a, o)
}

// carelessness is a rule of lives that hosts break, to show that the checkers notice the
// consequences.
type carelessness uint8

const (
	careful           carelessness = iota
	recordsLate                    // what a step puts on record is lost if the process dies in the step (K1)
	tellsTermsTwice                // a program is notified of another program's term (K4d)
	revealsEarly                   // a secret is revealed while programs act (K5)
	goesOnAfterReveal              // a life begins with a record whose secret is revealed (K6)
	forgetsRows                    // the next life of a lineage finds none of its rows (K7)
)
