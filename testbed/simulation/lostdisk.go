package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// loseDisk takes a host's data directory away. Its agent comes back with
// another identity, and is not a voter until an operator replaces it.
func (w *world) loseDisk(r *rand.Rand) {
	a, lasts, later, careless := w.victim(r), w.lasts(r), w.lasts(r), chance(r, 0.1)
	if a.own == nil && w.mayLose(a, careless) {
		w.wipe(r, a, lasts, later)
	}
}

// wipe takes the data directory away; the agent starts again after lasts, and an
// operator comes later.
func (w *world) wipe(r *rand.Rand, a *agent, lasts, later time.Duration) {
	before := a.peer
	w.takeDisk(a)
	w.later(lasts, func() { w.start(a) })
	w.later(lasts+later, func() {
		w.dropPending()
		w.replace(r, a, before)
	})
}

// takeDisk takes the data directory away, and with it the identity.
func (w *world) takeDisk(a *agent) {
	w.stop(a, true)
	w.note(a, "its DISK IS LOST")
	w.former[a.peer], a.past = true, nil
	a.wiped++
	a.peer = election.PeerID(fmt.Sprintf("p%c.%d", digit(a.number), a.wiped)) // sorts where the old one did
	w.orphaned = w.orphaned || a.own == nil && !w.remembered(a) && w.newestRoster() != nil
	a.own = nil // it may have joined another's cluster by its last write
	a.disk = disk{slow: a.disk.slow, failing: a.disk.failing}
	a.disk.format(w, a, election.State{Peer: a.peer})
}

// mayLose reports whether that disk may be lost. No loss makes two leaders as
// long as nobody forms a second cluster: an identity that is gone never votes
// again. So one of those who form it must always know of the first one, unless
// nobody can have led in it. Where nothing else changes who votes, a majority
// must be left too, whose votes G4 asks for; elsewhere an operator may be
// careless, and G4 is demanded only where it is promised (see promised).
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

// newestRoster is the newest on any disk, nil if there is none.
func (w *world) newestRoster() (newest *election.Roster) {
	for _, b := range w.agents {
		if r := b.disk.state.Roster; r != nil && b.own == nil && (newest == nil || newest.Version.Before(r.Version)) {
			newest = r
		}
	}
	return newest
}

// remembered reports whether one of those who form the cluster at their start,
// other than a, knows that there is one.
func (w *world) remembered(a *agent) bool {
	return w.plan.prepared || len(w.firstVoters()) == 1 || slices.ContainsFunc(w.agents, func(b *agent) bool {
		return b != a && b.own == nil && b.number < w.plan.voters && b.disk.state.Roster != nil
	})
}

// lives reports whether a majority of the voters still exists without a.
func (w *world) lives(voters []election.Voter, a *agent) bool {
	return w.most(voters, func(b *agent) bool { return b != a })
}

// most reports whether that holds of a majority of the voters, of those that exist.
func (w *world) most(voters []election.Voter, holds func(*agent) bool) bool {
	n := 0
	for _, v := range voters {
		if b := w.find(v.Peer); b != nil && holds(b) {
			n++
		}
	}
	return n*2 > len(voters)
}

// promised reports whether G4 is: a majority of the voters who count still
// exists, and all can hear of their roster. A first roster that its proposer alone
// had committed is lost with it, and those whom it told of it after all wait for
// each other.
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

// heard reports whether a majority of the newest roster's voters hold it, or can
// hear of it from a voter they know. Who goes back from a marked change may lose
// its disk after others have heard of the outcome, and before the voters have:
// then nobody is left whom they would believe.
func (w *world) heard(newest *election.Roster) bool {
	return w.most(newest.Voters, func(b *agent) bool {
		return slices.ContainsFunc(w.agents, func(c *agent) bool {
			r := c.disk.state.Roster
			return c.own == nil && r != nil && r.Version == newest.Version && (b.disk.state.Roster == nil || b.disk.state.Roster.Has(c.peer))
		})
	})
}

// reaches reports whether everybody can hear of the newest roster, observers too:
// from a voter they know, who may have to hear of it first. An observer that missed
// the change by which the last voter it knew was replaced believes nobody: an
// operator must wipe it. Until then it follows no leader, and hands its old roster
// to those who have none.
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

// keepers counts the voters but a who have that roster on disk.
func (w *world) keepers(a *agent, r *election.Roster) int {
	n := 0
	for _, b := range w.agents {
		if b != a && r.Has(b.peer) && b.disk.state.Roster != nil && b.disk.state.Roster.Version == r.Version {
			n++
		}
	}
	return n
}

// loseEarly has disks lost while the first roster is being formed: mostly that
// of the agent that proposes it.
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

// earlyLoss is how the summary calls the disks that are lost while the first
// roster is formed.
const earlyLoss = "early lost disk"

// dropPending has an operator restart those with --reset-genesis who wait for
// a first roster that can't be committed any more: who proposed it has lost
// its disk, and nobody has it.
func (w *world) dropPending() {
	for _, a := range w.agents {
		s := a.disk.state
		if s.Roster != nil || s.Pending == nil || !w.former[s.Pending.Proposer] || a.frozen > 0 || a.disk.damaged != nil ||
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

// resetGenesis drops the pending first roster of an agent that is started so.
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

// replace lets an operator put the agent back on the roster, and ask again
// until it is there.
func (w *world) replace(r *rand.Rand, a *agent, before election.PeerID) {
	if a.own != nil {
		return // another operator is at it
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

// digit numbers agents so that their peer IDs sort as they do.
func digit(i int) byte { return "0123456789abcdefghijklmnopqrstuvwxyz"[i] }
