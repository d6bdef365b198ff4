package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/testbed/messages"
)

const (
	// healLeases: so many leases after the end of all faults, all agents must agree on a leader:
	// one for promises held after a restart, one for a stand-down, and one for selection, voting
	// and genesis.
	healLeases = 3
	// stableLeases is for how many leases that leader is then watched.
	stableLeases = 6
	// handoverLeases is how many leases a preemption may take. Until then agents need not agree on a leader.
	handoverLeases = 3
	// maxHandovers bounds the preemptions of one election after the faults. There are five
	// priorities, 0 included, and each preemption goes to a higher one.
	maxHandovers = 4
)

// recovery is what was observed since the faults ended.
type recovery struct {
	began     int64
	agreed    map[election.Name]bool  // whether all have ever agreed on the leader of the election
	agreedAt  int64                   // when they had agreed in every election at least once; below 0: not yet
	handedAt  int64                   // when the last preemption was
	handed    map[election.Name]int64 // by election: when its last preemption was
	handovers map[election.Name]int
	changed   bool // an agent has reported a change of leader since the last look
}

// healAll ends all faults, demands a leader, and then demands that it stays.
func (w *world) healAll() {
	if w.violation != nil {
		return
	}
	w.note(nil, "HEAL: all faults end")
	w.phase = healing
	w.heal = recovery{began: w.Now, agreedAt: -1, handedAt: -int64(time.Hour), handovers: map[election.Name]int{},
		handed: map[election.Name]int64{}, agreed: map[election.Name]bool{}}
	w.settle()
	w.mendAll()
	w.endOwnClusters()
	if !w.promised() && !w.rolledBack {
		w.stats.Unpromised++
		w.until(w.Now + healLeases*int64(w.slowest()))
		return
	}
	if w.plan.revised {
		w.until(w.Now + int64(w.slowest())) // a revision that is under way must be decided first
		if !w.unrevise() && w.violation == nil {
			if r := w.newestRoster(); r == nil || !r.Joint() {
				w.fail("revision", "the roster can't be revised any more: %s", w.whoLeads())
			}
			return // a joint roster can't be revised, and lost voters may keep it joint
		}
		w.heal.began = w.Now
	}
	lease := int64(w.plan.timing.Lease)
	w.watch(w.heal.began + healLeases*int64(w.slowest()))
	w.watch(w.heal.handsOverUntil(w))
	if w.heal.agreedAt < 0 || !w.agreed() && !w.handingOver() {
		if !w.promised() && !w.rolledBack { // checked again: a write may have committed a first roster since
			w.stats.Unpromised++
			return
		}
		w.fail("G4", "no leader agreed by all %d leases after all faults ended: %s", healLeases, w.whoLeads())
	}
	w.phase = stable
	sent := w.stats.Messages
	w.watch(w.Now + stableLeases*lease)
	w.checkTraffic(w.stats.Messages - sent)
	w.checkDeaths()
	w.heal.checkMetas(w)
	for _, a := range w.agents {
		w.checkTrusted(a)
	}
	if w.heal.agreedAt >= 0 {
		w.stats.Heal = time.Duration(w.heal.agreedAt - w.heal.began)
		w.stats.HealLeases = float64(w.stats.Heal) / float64(w.slowest())
	}
}

// mendAll repairs all hosts, disks and links. Messages under way arrive soon.
func (w *world) mendAll() {
	beat := w.plan.timing.Heartbeat
	w.burst = burst{}
	w.plan.loss, w.plan.repeat, w.plan.reorder = 0, 0, 0
	w.plan.delay = min(w.plan.delay, beat/20)
	w.plan.late = min(w.plan.late, beat/50)
	w.plan.write = min(w.plan.write, beat/20)
	soon := w.Now + int64(beat/4)
	w.Reschedule(func(at int64, e event) int64 {
		if e.run == nil {
			at = min(at, soon)
		}
		return at
	})
	for i := range w.links {
		for j := range w.links[i] {
			w.links[i][j].lastAt = 0
		}
	}
	for _, a := range w.agents {
		w.healAgent(a)
	}
	w.dropPending()
	for _, in := range []time.Duration{beat, w.plan.timing.Lease / 2, w.plan.timing.Lease, w.plan.timing.Lease + beat} {
		w.after(in, w.dropPending) // again, because the write of a genesis may end only now
	}
	for i, a := range w.agents {
		for _, b := range w.agents[:i] {
			w.links[i][b.id].cuts, w.links[b.id][i].cuts = 1, 1
			w.mend(a, b)
			w.mend(b, a)
			w.dial(a, b, w.around(w.redial()))
			w.sight(a, b, w.rumourTime())
			w.sight(b, a, w.rumourTime())
		}
	}
}

// checkTraffic bounds the messages sent while there are no faults. Leaders' heartbeats and their
// answers are usual; the limit is more than three times that, for changes of leader and roster.
func (w *world) checkTraffic(sent int) {
	beats := stableLeases * int(w.plan.timing.Lease/w.plan.timing.Heartbeat)
	usual := beats * 2 * len(w.logs) * (len(w.agents) - 1)
	if sent > 3*usual+500 {
		w.fail("traffic", "%d messages in %d leases with no faults, about %d are usual", sent, stableLeases, usual)
	}
}

// healAgent ends all troubles of one agent.
func (w *world) healAgent(a *agent) {
	a.disk.slow, a.disk.failing, a.frozen, a.doom = 0, 0, 0, nil
	if a.disk.pending != nil {
		w.writtenIn(a, w.writeTime(a))
	}
	for e := range a.stand {
		a.stand[e].stands = a.stand[e].candidate
		w.prioritize(a, e, a.stand[e].usual)
	}
	if a.stopping || a.disk.taken {
		w.stop(a, true)
	}
	a.disk.restore()
	if !a.alive {
		w.start(a)
		return
	}
	if a.paused > 0 {
		a.paused = 1
		w.resume(a, a.life)
	}
	for e := range a.stand {
		w.standAgain(a, e)
	}
	a.accompany()
	if a.draining {
		w.setDrain(a, false)
	}
	w.advertise(a)
}

// watch lets time pass and checks whether all agree: at each heartbeat, or soon after a change, until they
// do; then once per lease. In between, an agent that loses its leader announces that, and observe checks it.
func (w *world) watch(end int64) {
	for looks := 0; w.Now < end && w.violation == nil; looks++ {
		look := int64(w.plan.timing.Lease)
		if w.heal.agreedAt < 0 {
			look = int64(w.plan.timing.Heartbeat / 4)
		}
		w.until(min(end, w.Now+look))
		if w.heal.agreedAt < 0 && !w.heal.changed && looks%4 != 0 && w.Now < end {
			continue // nothing has changed
		}
		w.heal.changed = false
		agreed := w.agreed()
		if w.heal.agreedAt < 0 && w.heal.complete(w) {
			w.heal.agreedAt = w.Now
			w.note(nil, "AGREED: %s", w.whoLeads())
		}
		if w.phase == stable && !agreed && !w.handingOver() && !w.between() {
			w.fail("stability", "the leader agreed by all did not stay: %s", w.whoLeads())
		}
	}
}

// agreed reports whether every agent names the same live leader, in every election.
func (w *world) agreed() bool {
	for _, a := range w.agents {
		if a.alive {
			w.poll(a)
		}
	}
	all := true
	for _, name := range w.plan.elections {
		on := w.agreedOn(name)
		w.heal.agreed[name] = w.heal.agreed[name] || on
		all = all && on
	}
	return all
}

// checkMetas checks that all agents have the newest meta of each leader's program.
func (r *recovery) checkMetas(w *world) {
	if w.violation != nil || w.handingOver() || w.between() || !w.agreed() {
		return
	}
	for e, name := range w.plan.elections {
		h, _ := w.agents[0].leaderOf(name, w.agents[0].clock.at(w.Now))
		p := w.find(h.Peer).programs[e]
		if p.k == nil {
			continue // the program has not resumed after a death
		}
		w.stats.Metas++
		for _, a := range w.agents {
			if got := a.status(name).Meta; got != p.meta {
				w.fail("meta", "%s has the meta %q of the leader of %s, %s, which is %q", a.peer, got, name, h.Peer, p.meta)
			}
		}
	}
}

// complete reports whether each election has had a leader on which all agreed, not necessarily
// at the same moment: an election may be handed to a higher priority meanwhile.
func (r *recovery) complete(w *world) bool {
	return !slices.ContainsFunc(w.plan.elections, func(name election.Name) bool { return !r.agreed[name] })
}

func (w *world) agreedOn(name election.Name) bool {
	var leader election.Holder
	for _, a := range w.agents {
		h, ok := a.leaderOf(name, a.clock.at(w.Now))
		if !ok || leader.Peer != "" && h != leader {
			return false
		}
		leader = h
	}
	l := w.find(leader.Peer)
	if l == nil || l.boot != leader.Lineage {
		return false
	}
	c := l.status(name)
	return c != nil && c.State == elector.Leading
}

func (a *agent) leaderOf(name election.Name, local election.Instant) (election.Holder, bool) {
	if c := a.status(name); c != nil && a.alive {
		return c.LeaderAt(local)
	}
	return election.Holder{}, false
}

func (w *world) whoLeads() string {
	text := ""
	for _, a := range w.agents {
		text += fmt.Sprintf("\n  %s:", a.peer)
		for _, c := range a.contests {
			h, _ := c.LeaderAt(a.clock.at(w.Now))
			text += fmt.Sprintf(" %s %s names %s@%d, candidates %v;", c.Election, c.State, h.Peer, c.Term, c.Candidates)
		}
		if r := a.disk.state.Roster; a.alive {
			text += " " + messages.Roster(r)
			for _, s := range words.Warnings(a.elector.Status(a.clock.at(w.Now)), a.name, func(name string) (id, addr string) { return name, name }) {
				text += " [" + s.Message + "]"
			}
		}
	}
	return text
}

// withdrawn checks that no leadership ends without a good reason after the faults.
func (r *recovery) withdrawn(w *world, x election.Withdrawal) {
	if w.phase == chaos || x.Election == election.RosterElection {
		return
	}
	if x.Reason == election.ReasonPreempted {
		r.handedAt, r.handed[x.Election] = w.Now, w.Now
		if r.handovers[x.Election]++; r.handovers[x.Election] > w.mayGiveWay() {
			w.fail("stability", "%d leaders of %s gave way since all faults ended", r.handovers[x.Election], x.Election)
		}
		return
	}
	if w.phase == stable && !(w.deaths && !slices.Contains(w.plan.elections, x.Election)) { // after a death, an agent is not a candidate in short elections
		w.fail("stability", "the leader of %s withdraws: %s", x.Election, x.Reason)
	}
}

// mayGiveWay is how many leaders of one election may be preempted after the faults. Without
// quorum, several may lead when the faults end, and each may give way when it learns of the
// others.
func (w *world) mayGiveWay() int {
	if w.plan.quorum {
		return maxHandovers
	}
	return maxHandovers + len(w.agents) - 1
}

// handsOverUntil returns until when elections may still lack a leader on which all agree,
// because the first leader gave way to a higher priority before all had learnt of it. It returns
// 0 if some election lacks a leader for another reason.
func (r *recovery) handsOverUntil(w *world) (end int64) {
	for _, name := range w.plan.elections {
		at, handed := r.handed[name]
		switch {
		case r.agreed[name]:
		case !handed:
			return 0
		default:
			end = max(end, at+handoverLeases*int64(w.plan.timing.Lease))
		}
	}
	return end
}

// observe checks that no agent loses its leader while all is stable.
func (w *world) observe(a *agent, x election.Announcement) {
	if w.phase == stable && x.Event == election.NoLeader && x.Election != election.RosterElection && !w.handingOver() && !w.reconnects(a, x.Election) {
		w.fail("stability", "%s loses the leader of %s: %s", a.peer, x.Election, x.Reason)
	}
}

// handingOver reports whether a leader gave way to a higher priority a short time ago.
func (w *world) handingOver() bool {
	return w.Now-w.heal.handedAt < handoverLeases*int64(w.plan.timing.Lease)
}
