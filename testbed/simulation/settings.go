package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/elector"
)

// leaseFault is the name of a fault that matters most where voters change often.
const leaseFault = "lease"

// settings are what an operator may change at each start of an agent.
type settings struct {
	timing       elector.Timing
	preempt      bool
	preemptDelay time.Duration
}

// drawSettings draws the settings of an agent's next life. All agents should have one lease.
// They do, except for agents that were not started again since the operator changed it.
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
	return s
}

// agrees reports whether the two agents accept each other: at the hello and in gossip they
// compare their leases.
//
// An agent whose roster names a lease goes by that.
func (a *agent) agrees(b *agent) bool {
	return a.settings.timing.Lease == b.settings.timing.Lease || a.disk.state.Roster.Lease() != 0 || b.disk.state.Roster.Lease() != 0
}

// changeLease has an operator change the lease, and restart the agents that can be reached. The
// others keep the old lease, and so are on their own, until they are restarted for another
// reason.
func (w *world) changeLease(r *rand.Rand) {
	if !w.plan.varied {
		return
	}
	w.lease = w.drawLease(r)
	w.note(nil, "the lease is to be %v from each agent's next start on", w.lease)
	unreachable := pick(r, 0, 0.2, 0.5)
	leader := w.victim(r) // a leader half of the time; it may be spared
	spared := chance(r, 0.5)
	if w.changes(rosters) && chance(r, 0.7) { // no leader may last long now, so voters are changed as well
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

// drawLease draws a lease, which may be much longer than the network needs.
func (w *world) drawLease(r *rand.Rand) time.Duration {
	l := w.plan.timing.Lease
	return pick(r, l, l, 3*l, 12*l)
}

// settle returns to the plan's timing. Agents with another timing stop, and start again later.
func (w *world) settle() {
	w.lease = w.plan.timing.Lease
	for _, a := range w.agents {
		if a.alive && a.settings.timing != w.plan.timing {
			w.stop(a, true) // healAgent starts it again
		}
	}
}

// slowest is the longest time for which a promise may still run.
func (w *world) slowest() time.Duration { return max(w.longest, w.plan.timing.Lease) }
