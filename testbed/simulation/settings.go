package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/elector"
)

// leaseFault is the name of the fault that matters where voters change often.
const leaseFault = "lease"

// settings are what an operator may give an agent anew at each of its starts.
type settings struct {
	timing       elector.Timing
	preempt      bool
	preemptDelay time.Duration
	fixed        time.Duration // deadline of the failure detector; 0: phi-accrual
}

// drawSettings draws those of an agent's next life. All agents are meant to have
// one lease, and do, but for those that were not started again since the
// operator changed it.
func (w *world) drawSettings(a *agent) settings {
	s := w.plan.settings
	if !w.plan.varied {
		return s
	}
	lease := w.lease
	s.timing.Lease = lease
	w.longest = max(w.longest, lease)
	if w.phase == chaos {
		s.timing.Heartbeat = pick(a.rng, s.timing.Heartbeat, lease/4, lease/8)
		s.timing.DiskPatience = pick(a.rng, 0, lease, 3*lease)
		s.preempt = a.rng.IntN(3) != 0
		s.preemptDelay = pick(a.rng, 0, s.timing.Heartbeat, 5*s.timing.Heartbeat)
	}
	s.fixed = pick(a.rng, 0, 0, 0, max(lease/2, 2*s.timing.Heartbeat))
	return s
}

// agrees reports whether the two agents let each other in: at the hello and in
// gossip they compare their leases.
func (a *agent) agrees(b *agent) bool { return a.settings.timing.Lease == b.settings.timing.Lease }

// changeLease has an operator give the agents another lease, and start those
// again that he can reach. The others keep what they have, alone, until they
// are started again for another reason.
func (w *world) changeLease(r *rand.Rand) {
	if !w.plan.varied {
		return
	}
	w.lease = w.drawLease(r)
	w.note(nil, "the lease is to be %v from each agent's next start on", w.lease)
	unreachable := pick(r, 0, 0.2, 0.5)
	leader := w.victim(r) // half of the time, and then out of reach
	spared := chance(r, 0.5)
	if w.changes(rosters) && chance(r, 0.7) { // nobody may lead for long, so other voters are wanted
		for i := range 5 {
			w.later(time.Duration(1+2*i)*w.plan.timing.Lease, func() { w.changeRoster(r) })
		}
	}
	for _, i := range r.Perm(len(w.agents)) {
		a := w.agents[i]
		if a == leader && spared {
			continue
		}
		reached, when, down := !chance(r, unreachable), around(r, w.plan.timing.Lease), around(r, w.plan.timing.Lease/2)
		w.later(when, func() {
			if reached && a.alive && a.paused == 0 {
				w.stop(a, true)
				w.later(down, func() { w.start(a) })
			}
		})
	}
}

// drawLease draws one that may be much longer than the network's pace calls for.
func (w *world) drawLease(r *rand.Rand) time.Duration {
	l := w.plan.timing.Lease
	return pick(r, l, l, 3*l, 12*l)
}

// settle returns to the plan's timing: agents with another one stop, to start again with it.
func (w *world) settle() {
	w.lease = w.plan.timing.Lease
	for _, a := range w.agents {
		if a.alive && a.settings.timing != w.plan.timing {
			w.stop(a, true) // and it starts again with the others
		}
	}
}

// slowest is how long the longest promise may still run.
func (w *world) slowest() time.Duration { return max(w.longest, w.plan.timing.Lease) }
