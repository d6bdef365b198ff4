package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// leaseFault names the fault changeLease. A change of the lease matters most where voters change often.
const leaseFault = "lease"

// settings are what an operator may change at each start of an agent.
type settings struct {
	timing       election.Timing
	preempt      bool
	preemptDelay time.Duration
}

// drawSettings draws the settings of an agent's next life. All agents have the same lease, except those that
// were not restarted since the operator changed it.
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

// agrees reports whether the two agents accept each other. They compare their configured leases, in the hello
// and in gossip. The comparison is skipped if the roster of either one names a lease: that lease counts
// instead.
func (a *agent) agrees(b *agent) bool {
	return a.settings.timing.Lease == b.settings.timing.Lease || a.disk.state.Roster.Lease() != 0 || b.disk.state.Roster.Lease() != 0
}

// changeLease plays an operator who changes the lease, and restarts the agents that can be
// reached. The others keep the old lease, and so are cut off, until they are restarted for
// another reason.
func (w *world) changeLease(r *rand.Rand) {
	if !w.plan.varied {
		return
	}
	w.lease = w.drawLease(r)
	w.note(nil, "the lease is to be %v from each agent's next start on", w.lease)
	unreachable := pick(r, 0, 0.2, 0.5)
	leader := w.victim(r) // half of the time a leader; it may be spared
	spared := chance(r, 0.5)
	if w.changes(rosters) && chance(r, 0.7) { // leases differ now, so leaders change often: change voters too
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
				w.stopFor(a, true, false, down)
			}
		})
	}
}

// drawLease draws a lease, which may be much longer than the network needs.
func (w *world) drawLease(r *rand.Rand) time.Duration {
	l := w.plan.timing.Lease
	return pick(r, l, l, 3*l, 12*l)
}

// settle goes back to the plan's timing. Agents with another timing stop, and start again later.
func (w *world) settle() {
	w.lease = w.plan.timing.Lease
	for _, a := range w.agents {
		if a.alive && a.settings.timing != w.plan.timing {
			w.stop(a, true) // healAgent starts it again
		}
	}
}

// slowest returns the longest time for which a promise can still run.
func (w *world) slowest() time.Duration { return max(w.longest, w.plan.timing.Lease) }

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

// hurryChange plays an operator who replaces most voters while a leader is cut off. In the middle
// of the change the former voters are started again: they still hold what they promised to that
// leader, and remember nothing else.
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
	pairs := crossing(w.agents, func(a *agent) bool { return a == lead })
	for _, p := range pairs {
		setCut(p[0], p[1], true, true, w.cut)
		w.hangUp(p[0], p[1], true)
	}
	w.later(back, func() {
		for _, p := range pairs {
			setCut(p[0], p[1], true, true, w.mend)
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

// In half of the worlds with quorum the roster's settings and rights change as well.

// revise asks an agent to change the lease, the algorithm or a right.
func (w *world) revise(a *agent, r *rand.Rand) election.ChangeRoster {
	l := w.plan.timing.Lease
	change := election.ChangeRoster{Request: w.request()}
	if chance(r, 0.6) {
		change.Settings.Lease = pick(r, l, 2*l/3, 2*l, 5*l)
		w.longest = max(w.longest, change.Settings.Lease)
	}
	if chance(r, 0.2) {
		change.Settings.Algorithm = pick(r, "bully", "ring")
	}
	if change.Settings == (election.Settings{}) {
		change.Right.Election = pick(r, w.plan.elections...)
		for _, b := range w.agents {
			if chance(r, 0.6) {
				change.Right.Agents = append(change.Right.Agents, b.peer)
			}
		}
		slices.Sort(change.Right.Agents)
		change.Right.MaxPriority = pick(r, 0, 0, 1, 100)
	}
	w.note(a, "is asked to revise the roster: %+v", change)
	w.input(a, change)
	return change
}

// unrevise asks one agent after the other to reset the roster's lease to the plan's and to remove
// its rights. It reports whether all agents have adopted a roster with both.
func (w *world) unrevise() bool {
	for tries := range 20 * len(w.agents) {
		if revised := slices.ContainsFunc(w.agents, w.isRevised); !revised || w.violation != nil {
			return !revised
		}
		asked := w.agents[tries%len(w.agents)]
		if held := asked.disk.state.Roster; asked.alive && w.isRevised(asked) {
			change := election.ChangeRoster{Request: w.request(), Settings: election.Settings{Lease: w.plan.timing.Lease}}
			if len(held.Rights) > 0 {
				change.Right.Election = held.Rights[0].Election
			}
			if held.Joint() { // its new voters may be lost
				change = election.ChangeRoster{Request: change.Request, Cancel: true}
			}
			w.note(asked, "is asked to revise the roster back: %+v", change)
			w.input(asked, change)
		}
		w.until(w.Now + int64(w.slowest()))
	}
	return false
}

func (w *world) isRevised(a *agent) bool {
	r := a.disk.state.Roster
	return r != nil && a.own == nil && (len(r.Rights) > 0 || r.Lease() != 0 && r.Lease() != w.plan.timing.Lease)
}

// checkAllowed checks that no voter grants a term against the rights of its roster (R15).
func (w *world) checkAllowed(a *agent, m election.VoteGrant) {
	if r := a.disk.state.Roster; r != nil && r.Version == m.Version && !r.Allows(m.Election, m.Holder.Peer, 0) {
		w.fail("R15", "%s grants term %d of %s to %s, which its roster does not allow: %+v", a.peer, m.Term, m.Election, m.Holder.Peer, r.Rights)
	}
}
