package simulation

import (
	"math/rand/v2"
	"slices"

	"github.com/doyen-election/doyen/election"
)

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

// unrevise has the roster's lease be the plan's again, and its rights go, by asking one agent
// after the other. It reports whether all have taken that over.
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
			if held.Joint() { // perhaps its new voters are lost
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
