package simulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/election"
)

// loseDisk takes a host's data directory away. Its agent comes back with
// another identity, and is no voter until an operator replaces it.
func (w *world) loseDisk(r *rand.Rand) {
	a, lasts, later := w.victim(r), w.lasts(r), w.lasts(r)
	if !w.mayLose(a) {
		return
	}
	w.stop(a, true)
	w.note(a, "its DISK IS LOST")
	before := a.peer
	w.former[a.peer] = true
	a.wiped++
	a.peer = election.PeerID(fmt.Sprintf("p%c.%d", digit(a.number), a.wiped)) // sorts where the old one did
	a.disk = disk{slow: a.disk.slow, failing: a.disk.failing}
	a.disk.format(w, a, election.State{Peer: a.peer})
	w.later(lasts, func() { w.start(a) })
	w.later(lasts+later, func() { w.replace(r, a, before) })
}

// mayLose reports whether the cluster can stand the loss of that disk: each
// voter who is not the victim has the newest roster on disk, and they are a
// majority of it.
func (w *world) mayLose(a *agent) bool {
	if !w.plan.quorum {
		return true
	}
	var newest *election.Roster
	for _, b := range w.agents {
		if r := b.disk.state.Roster; r != nil && (newest == nil || newest.Version.Before(r.Version)) {
			newest = r
		}
	}
	if newest == nil || newest.Joint() {
		return false
	}
	rest := w.keepers(a, newest)
	return rest*2 > len(newest.Voters) && (rest == len(newest.Voters)-1 || !newest.Has(a.peer))
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

// replace lets an operator put the agent back on the roster, and ask again
// until it is there.
func (w *world) replace(r *rand.Rand, a *agent, before election.PeerID) {
	asked := w.victim(r)
	if roster := asked.disk.state.Roster; roster != nil && roster.Has(a.peer) && !roster.Has(before) || !w.plan.quorum {
		return
	}
	w.note(asked, "is asked to REPLACE %s by %s on the roster", before, a.peer)
	w.input(asked, election.ChangeRoster{Request: w.request(), Remove: []election.PeerID{before},
		Add: []election.Voter{{Name: a.name, Peer: a.peer}}})
	w.later(w.lasts(r), func() { w.replace(r, a, before) })
}

// digit numbers agents so that their peer IDs sort as they do.
func digit(i int) byte { return "0123456789abcdefghijklmnopqrstuvwxyz"[i] }
