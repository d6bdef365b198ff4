package simulation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxPast bounds how many older copies of a data directory are kept.
const maxPast = 8

// rollBack restores an older copy of a host's data directory. The newer promises are lost, so G1
// and G2 do not hold any more, and neither do rules that rest on them. This must still hold: no
// other agent is reported to have an older copy, and an agent that has learnt that its copy is
// older neither promises nor leads.
func (w *world) rollBack(r *rand.Rand) {
	a, lasts, which := w.victim(r), w.lasts(r), r.IntN(maxPast)
	if len(a.disk.past) == 0 || a.frozen > 0 || a.disk.damaged != nil {
		return
	}
	w.stopFor(a, true, false, lasts)
	older := a.disk.past[which%len(a.disk.past)]
	if !a.disk.files.settled() || bytes.Equal(older, a.disk.sure) {
		return
	}
	state, err := codec.DecodeState(older)
	if err != nil {
		w.fail("durable state", "%s wrote what can't be read: %v", a.peer, err)
		return
	}
	w.note(a, "an OLDER COPY of its data directory is restored: %s", messages.State(state))
	a.disk.files.format(stateFile, older)
	a.disk.sure, a.disk.state = older, state
	a.rolledBack, w.rolledBack = true, true
}

// rests reports whether the rule holds only as long as data directories keep all promises.
func rests(rule string) bool {
	return slices.Contains([]string{"G1", "G2", "G4", "G5", "H5", "counter", "stability", "terms on disk", "roster on disk",
		"K4b", "K4d", "G7", "stale answer", "announced terms never fall", "announced deadlines never fall", "traffic"}, rule)
}

// checkTrusted checks that no agent is reported without reason to have an older copy of its data
// directory, or is barred without reason.
func (w *world) checkTrusted(a *agent) {
	if !a.alive || a.elector == nil {
		return
	}
	for _, x := range a.elector.Status(a.clock.at(w.Now)).Warnings {
		switch {
		case x.Code == "data_dir_older" && !a.rolledBack:
			w.fail("older copies", "%s reports: %+v", a.peer, x)
		case meetsFormer(x) && a.own == nil, x.Code == "data_dir_shared" && !a.disk.taken:
			w.fail("barred", "%s reports without reason: %+v", a.peer, x)
		case bars(x):
			w.stats.Barred++
			if meetsFormer(x) {
				w.stats.Former++
			}
		case x.Code == "voter_data_dir_older":
			for _, b := range w.agents {
				if b.name == x.Agent && !b.rolledBack {
					w.fail("older copies", "%s reports: %+v", a.peer, x)
				}
			}
		}
	}
}

// intrude lets a second process use an agent's data directory. The process reads the state,
// grants itself a term in some election, like an agent that is cut off, writes that, and ends.
// Its vote wins nothing, so the directory still holds all that was ever promised. The agent must notice the
// other process before it promises anything that rests on its own next write. Later an operator starts the
// agent again.
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
	if err := second.Write(election.Persist{State: &state}); err != nil {
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
// directory. It notifies the agent of the reason.
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

// beginAgain plays an operator who starts an agent with an empty data directory, as if there were
// no cluster yet. The agent forms a cluster alone and leads there, until it meets agents of the
// cluster in which it was a voter. Later the operator does what the agent's warning asks for.
func (w *world) beginAgain(r *rand.Rand) {
	a, lasts, later, until := w.victim(r), w.lasts(r), w.lasts(r), w.lasts(r)
	if a.own != nil || a.frozen > 0 || a.disk.damaged != nil || !w.plan.quorum || !w.newestRoster().Has(a.peer) ||
		chance(r, 0.5) || !w.mayLose(a, false) {
		return
	}
	before := a.peer
	w.takeDisk(a)
	w.beginOwn(a)
	w.later(lasts, func() { w.start(a) })
	w.later(lasts+until, func() {
		w.endOwn(a)
		w.later(later, func() { w.replace(r, a, before) })
	})
}

// beginOwn makes the agent form a cluster alone at its next start. The leaderships of that
// cluster have nothing to do with those of other clusters.
func (w *world) beginOwn(a *agent) {
	w.note(a, "is to BEGIN AGAIN, alone")
	for i, l := range w.logs {
		a.own = append(a.own, newContestLog(i, l.name))
	}
}

// endOwn takes an agent out of a cluster formed alone. The agent joins the others, with an empty disk.
func (w *world) endOwn(a *agent) {
	if a.own == nil {
		return
	}
	w.takeDisk(a)
	w.start(a)
}

// joinedCluster records which cluster the agent has just joined. An agent without a roster
// joins the first cluster that it meets. That may be a cluster that another agent formed when it
// began again. This agent then belongs to it until all faults end.
func (w *world) joinedCluster(a *agent, cluster string) {
	if a.own != nil {
		w.clusters[cluster] = a.own
	} else if own := w.clusters[cluster]; own != nil {
		a.own = own
		w.note(a, "JOINS the cluster of one that began again")
	}
}

// logOfLeader returns the log of the election that the agent's leader leads. That may be the
// log of another cluster: an agent without a roster follows any leader, and goes on naming it
// after it has joined a cluster, until that leader's lease ends.
func (w *world) logOfLeader(a *agent, c *elector.ContestStatus) *contestLog {
	l := w.log(a, c.Election)
	if l.owners[c.Term] == c.Leader {
		return l
	}
	if other := w.logs[l.index]; other.owners[c.Term] == c.Leader {
		return other
	}
	for _, logs := range w.clusters {
		if other := logs[l.index]; other.owners[c.Term] == c.Leader {
			return other // holders are unique, so this is the only such log
		}
	}
	return l
}

func (w *world) logsOf(a *agent) []*contestLog {
	if a.own != nil {
		return a.own
	}
	return w.logs
}

// endOwnClusters ends the clusters of agents that began again, when all faults have ended. An agent that is
// connected to a voter of its former cluster must be barred by now.
func (w *world) endOwnClusters() {
	if len(w.clusters) == 0 && !slices.ContainsFunc(w.agents, func(a *agent) bool { return a.own != nil }) {
		return
	}
	w.until(w.Now + 2*int64(w.slowest())) // an agent may still be writing to its disk that it joined such a cluster
	for _, a := range w.agents {
		if a.own == nil || w.violation != nil {
			continue
		}
		if b := w.formerOf(a); b != nil && !w.barred(a) {
			w.fail("former cluster", "%s leads its own cluster, though %s knows it as a voter of %s, and they are connected", a.peer, b.peer,
				messages.Roster(b.disk.state.Roster))
		}
		w.endOwn(a)
	}
	w.heal.began = w.Now
}

// formerOf returns a voter that is connected to the agent, and whose roster lists another
// identity under the agent's name; nil if there is none.
func (w *world) formerOf(a *agent) *agent {
	for _, b := range w.agents {
		if b == a || b.own != nil || !a.alive || !b.alive || !a.disk.state.Roster.Has(a.peer) || !b.disk.state.Roster.Has(b.peer) {
			continue
		}
		c := w.conns[a.id][b.id]
		if v, named := b.disk.state.Roster.Named(a.name); named && v.Peer != a.peer && c.up && c.ends[0].told && c.ends[1].told {
			return b
		}
	}
	return nil
}

// suspect reports whether there is a reason why the agent must not promise or lead anything any
// more. The agent may or may not have learnt of it.
func (a *agent) suspect() bool { return a.rolledBack || a.own != nil || a.disk.taken }

// barred reports whether the agent has learnt that it must not promise or lead anything.
func (w *world) barred(a *agent) bool {
	if !a.suspect() || !a.alive || !w.plan.quorum {
		return false
	}
	return slices.ContainsFunc(a.elector.Status(a.clock.at(w.Now)).Warnings, bars)
}

// bars reports whether an agent with this warning must not vote any more.
func bars(x elector.Warning) bool {
	return x.Code == "data_dir_older" || x.Code == "data_dir_shared" || meetsFormer(x)
}

// meetsFormer reports whether an agent with this warning has met its former cluster.
func meetsFormer(x elector.Warning) bool {
	return x.Barred.Code == "identity_changed"
}

// checkBarred checks that a barred agent promises nothing, and claims no lease for longer than
// it did before it was barred.
func (w *world) checkBarred(a *agent, local election.Instant, m election.Message) {
	if !w.barred(a) {
		return
	}
	switch m := m.(type) {
	case election.VoteGrant, election.RosterAccept, election.RosterPropose, election.GenesisAccept, election.GenesisPropose:
		w.fail("barred", "%s must not vote any more, knows it, and sends %s", a.peer, messages.Describe(m))
	case election.HeartbeatAck:
		if h, ok := w.handles.(election.Heartbeat); ok && h.Send == m.Send && m.Version != (election.Version{}) && len(m.Nacks) < len(h.Claims) {
			w.fail("barred", "%s must not vote any more, knows it, and renews: %s to %s", a.peer, messages.Describe(m), messages.Describe(h))
		}
	case election.Heartbeat:
		for _, c := range m.Claims {
			if l := w.log(a, c.Election); l != nil && c.Remaining > 0 && local.Add(c.Remaining) > l.ends[leased{c.Term, a.holder()}].until {
				w.fail("barred", "%s must not lead any more, knows it, and leads on: %s", a.peer, messages.Describe(m))
			}
		}
	}
}

// checkStepsDown checks that a barred agent leads nothing.
func (w *world) checkStepsDown(a *agent) {
	if !w.barred(a) {
		return
	}
	for _, c := range a.contests {
		if w.log(a, c.Election) != nil && c.State == elector.Leading {
			w.fail("barred", "%s must not lead any more, knows it, and claims to lead %s", a.peer, c.Election)
		}
	}
	if t, _ := a.elector.Drives(); t > 0 {
		w.fail("barred", "%s must not lead any more, knows it, and drives the roster", a.peer)
	}
}
