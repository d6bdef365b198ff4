package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// loseDisk takes a host's data directory away. The agent comes back with another identity, and is not a voter
// until an operator puts that identity on the roster.
func (w *world) loseDisk(r *rand.Rand) {
	a, lasts, later, careless := w.victim(r), w.lasts(r), w.lasts(r), chance(r, 0.1)
	if a.own == nil && w.mayLose(a, careless) {
		w.wipe(r, a, lasts, later)
	}
}

// wipe takes the data directory away. The agent starts again after the duration lasts. After a further
// duration, later, an operator replaces the agent's former identity on the roster.
func (w *world) wipe(r *rand.Rand, a *agent, lasts, later time.Duration) {
	before := a.peer
	w.takeDisk(a)
	w.later(lasts, func() { w.start(a) })
	w.later(lasts+later, func() {
		w.dropPending()
		w.replace(r, a, before)
	})
}

// takeDisk takes the data directory away, and the identity with it.
func (w *world) takeDisk(a *agent) {
	w.stop(a, true)
	w.note(a, "its DISK IS LOST")
	w.former[a.peer], a.past = true, nil
	a.wiped++
	a.peer = election.PeerID(fmt.Sprintf("p%c.%d", digit(a.number), a.wiped)) // sorts as the former one did
	w.orphaned = w.orphaned || a.own == nil && !w.remembered(a) && w.newestRoster() != nil
	a.own = nil // its last write may have joined it to another agent's cluster
	a.disk = disk{slow: a.disk.slow, failing: a.disk.failing}
	a.disk.format(w, a, election.State{Peer: a.peer})
}

// mayLose reports whether the agent's disk may be lost. An identity that is lost never votes
// again, so a loss makes two leaders only if a second cluster is formed. Hence one of the agents
// that form clusters must always know of the first cluster, unless nobody can have led in it. If no operator
// changes the voters, a majority of them must remain as well, since G4 needs it. If an operator does, the
// loss may be careless; G4 is then demanded only if promised reports true.
func (w *world) mayLose(a *agent, careless bool) bool {
	newest := w.newestRoster()
	if newest == nil || !w.plan.quorum {
		return true
	}
	if !w.remembered(a) {
		return !w.shared && len(newest.Voters) > 1
	}
	if w.changes(rosters) {
		return careless || w.lives(newest.Voters, a) && (!newest.Joint() || w.lives(newest.Next, a))
	}
	rest := w.keepers(a, newest)
	return !newest.Joint() && rest*2 > len(newest.Voters) && (rest == len(newest.Voters)-1 || !newest.Has(a.peer))
}

// newestRoster is the newest roster on any disk; nil if there is none.
func (w *world) newestRoster() (newest *election.Roster) {
	for _, b := range w.agents {
		if r := b.disk.state.Roster; r != nil && b.own == nil && (newest == nil || newest.Version.Before(r.Version)) {
			newest = r
		}
	}
	return newest
}

// remembered reports whether no second cluster is formed if a loses its disk. Either no genesis of several
// voters happens, or an agent other than a that takes part in genesis has a roster on disk.
func (w *world) remembered(a *agent) bool {
	return w.plan.prepared || len(w.firstVoters()) == 1 || slices.ContainsFunc(w.agents, func(b *agent) bool {
		return b != a && b.own == nil && b.number < w.plan.voters && b.disk.state.Roster != nil
	})
}

// lives reports whether a majority of the voters still exists without a.
func (w *world) lives(voters []election.Voter, a *agent) bool {
	return w.most(voters, func(b *agent) bool { return b != a })
}

// most reports whether a majority of the voters still exist and satisfy the condition.
func (w *world) most(voters []election.Voter, holds func(*agent) bool) bool {
	n := 0
	for _, v := range voters {
		if b := w.find(v.Peer); b != nil && holds(b) {
			n++
		}
	}
	return n*2 > len(voters)
}

// promised reports whether G4 is promised: a majority of the voters that count still exists,
// and all agents can learn of their roster. If only one agent had committed the first roster, and
// it has lost its disk, the agents that it had informed wait for each other.
func (w *world) promised() bool {
	newest := w.newestRoster()
	switch {
	case !w.plan.quorum:
		return true
	case w.orphaned:
		return false
	case newest == nil:
		return !w.formed
	}
	return w.lives(newest.Voters, nil) && w.heard(newest) && w.reaches(newest) && (!newest.Committed || w.lives(newest.Next, nil))
}

// heard reports whether a majority of the newest roster's voters have it, or can learn of it
// from a voter that they know. That can fail: an agent goes back from a marked change, informs
// others but not yet the voters, and loses its disk. Then the voters believe none of the agents
// that have the roster.
func (w *world) heard(newest *election.Roster) bool {
	return w.most(newest.Voters, func(b *agent) bool {
		return slices.ContainsFunc(w.agents, func(c *agent) bool {
			r := c.disk.state.Roster
			return c.own == nil && r != nil && r.Version == newest.Version && (b.disk.state.Roster == nil || b.disk.state.Roster.Has(c.peer))
		})
	})
}

// reaches reports whether all agents, observers too, can learn of the newest roster from a
// voter that they know. That voter may have to learn of it first. An observer can miss the change
// that replaced the last voter it knew. It then believes nobody until an operator wipes it: it
// follows no leader, and hands its old roster to agents that have none.
func (w *world) reaches(newest *election.Roster) bool {
	knows := map[election.PeerID]bool{}
	for more := true; more; {
		more = false
		for _, b := range w.agents {
			r := b.disk.state.Roster
			if !knows[b.peer] && (r == nil || r.Version == newest.Version || slices.ContainsFunc(r.All(), func(v election.Voter) bool { return knows[v.Peer] })) {
				knows[b.peer], more = true, true
			}
		}
	}
	return len(knows) == len(w.agents)
}

// keepers counts the voters other than a that have this roster on disk.
func (w *world) keepers(a *agent, r *election.Roster) int {
	n := 0
	for _, b := range w.agents {
		if b != a && r.Has(b.peer) && b.disk.state.Roster != nil && b.disk.state.Roster.Version == r.Version {
			n++
		}
	}
	return n
}

// loseEarly takes disks away while the first roster is being formed, mostly the disk of its
// proposer.
func (w *world) loseEarly(proposed *election.Genesis) {
	if !w.plan.early || w.wipedEarly >= 3 || w.phase != chaos {
		return
	}
	w.wipedEarly++
	r := rand.New(rand.NewPCG(w.options.Seed, 0x6561726c79+uint64(w.wipedEarly)))
	a := w.anyone(r)
	if p := w.find(proposed.Proposer); p != nil && chance(r, 0.7) {
		a = p
	}
	wait, lasts, later := around(r, 2*w.plan.delay+w.plan.write), around(r, w.plan.timing.Heartbeat), w.lasts(r)
	w.later(wait, func() {
		if a.own == nil && w.mayLose(a, false) {
			w.stats.Faults[earlyLoss]++
			w.wipe(r, a, lasts, later)
		}
	})
}

// earlyLoss is the summary's name for the disks that are lost while the first roster is being
// formed.
const earlyLoss = "early lost disk"

// dropPending plays an operator who restarts some agents with --reset-genesis. These agents wait
// for a first roster that can't be committed any more: its proposer has lost its disk or is in
// another cluster now, and no agent has committed it.
func (w *world) dropPending() {
	for _, a := range w.agents {
		s := a.disk.state
		if s.Roster != nil || s.Pending == nil || !w.gaveUp(s.Pending) || a.frozen > 0 || a.disk.damaged != nil ||
			slices.ContainsFunc(w.agents, func(b *agent) bool {
				return b.disk.state.Roster != nil && b.disk.state.Roster.Cluster == s.Pending.Roster.Cluster
			}) {
			continue
		}
		w.stop(a, true)
		a.resets = true
		w.start(a)
	}
}

// gaveUp reports whether the proposer of a first roster can't commit it any more.
func (w *world) gaveUp(g *election.Genesis) bool {
	p := w.find(g.Proposer)
	return w.former[g.Proposer] || p != nil && p.disk.state.Roster != nil && p.disk.state.Roster.Cluster != g.Roster.Cluster
}

// resetGenesis drops the pending first roster of an agent that is started with --reset-genesis.
func (w *world) resetGenesis(a *agent, s election.State) (election.State, bool) {
	a.resets = false
	if s.Roster != nil || s.Pending == nil {
		return s, true
	}
	w.note(a, "is started with --reset-genesis")
	s.Pending = nil
	a.disk.format(w, a, s)
	return a.disk.open(w, a)
}

// replace plays an operator who puts the agent back on the roster, and asks again until it is
// there.
func (w *world) replace(r *rand.Rand, a *agent, before election.PeerID) {
	if a.own != nil {
		return // endOwn deals with this agent
	}
	asked := w.victim(r)
	if roster := asked.disk.state.Roster; asked.own == nil && roster != nil && !roster.Has(before) && (roster.Has(a.peer) || w.changes(rosters)) || !w.plan.quorum {
		return
	}
	w.note(asked, "is asked to REPLACE %s by %s on the roster", before, a.peer)
	w.input(asked, election.ChangeRoster{Request: w.request(), Remove: []election.PeerID{before},
		Add: []election.Voter{{Name: a.name, Peer: a.peer}}})
	w.later(w.lasts(r), func() { w.replace(r, a, before) })
}

// digit writes a number as a character, so that peer IDs sort as the numbers do.
func digit(i int) byte { return "0123456789abcdefghijklmnopqrstuvwxyz"[i] }
