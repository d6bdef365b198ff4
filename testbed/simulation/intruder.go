package simulation

import (
	"errors"
	"math/rand/v2"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// intrude lets a second process use an agent's data directory. The process reads the state,
// grants itself a term in some election, like an agent that is cut off, writes that, and ends.
// Its vote wins nothing, so the directory still holds all that was ever promised. The agent
// must notice before it promises anything that rests on its own idea of the directory. Later an
// operator starts the agent again.
func (w *world) intrude(r *rand.Rand) {
	a, boot, lasts := w.victim(r), election.LineageID(r.Uint64()), w.lasts(r)
	_, name := w.contestOf(r)
	d := &a.disk
	if !a.alive || !w.plan.quorum || a.frozen > 0 || d.failing > 0 || d.damaged != nil || d.taken || chance(r, 0.5) {
		return
	}
	c := &calls{filesystem: &d.files, dies: -1, fails: -1, rng: r}
	second, state, err := store.OpenRecord(c)
	if err != nil {
		w.fail("durable state", "a second process can't read what %s wrote: %v", a.peer, err)
		return
	}
	d.look(w, a) // the store has synced what it read
	if d.believed = d.state; state.Roster.Has(a.peer) && state.Grants != nil {
		g := state.Grant(name)
		state.Grants[name] = election.Grant{Term: max(g.Term, state.Roster.Floor) + 1,
			Holder: election.Holder{Peer: a.peer, Lineage: boot}, Lease: max(g.Lease, a.settings.timing.Lease)}
	}
	state.Writes++
	w.note(a, "a SECOND PROCESS writes to its data directory: %s", messages.State(state))
	if err := second.Write(state); err != nil {
		w.fail("durable state", "a second process can't write to the data directory of %s: %v", a.peer, err)
		return
	}
	d.taken = true
	d.look(w, a)
	w.stats.Taken++
	w.later(lasts, a.inLife(func() {
		w.stop(a, true)
		w.start(a)
	}))
}

// noticed checks that an agent stops writing when another process has written to its data
// directory, and notifies it of the reason.
func (w *world) noticed(a *agent, err error) {
	d := &a.disk
	taken, found := errors.AsType[*store.TakenError](err)
	switch {
	case found && !d.taken:
		w.fail("one writer", "%s takes its own file for another's", a.peer)
	case err == nil && d.taken:
		w.fail("one writer", "%s writes on, though another process has written to its data directory", a.peer)
	case found && !d.told:
		d.told = true
		w.input(a, election.Barred{Code: "data_dir_shared", Detail: taken.Error()})
	}
}
