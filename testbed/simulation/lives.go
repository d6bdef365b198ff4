package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/virtual"
)

// In half of the worlds agents keep a record, with which the next life goes on as the same
// holder. The record outlives the process, but not the host's boot.

// carelessness is a rule about lives that hosts break, to show that the checkers notice the
// consequences.
type carelessness uint8

const (
	careful     carelessness = iota
	recordsLate              // what a step puts on record is lost if the process dies in the step (K1)
	forgetsRows              // the next life of a lineage finds none of its rows (K7)
)

// drawLives draws whether there are records, companions, words and revisions. Other draws do not depend on these.
func (p *plan) drawLives(seed uint64) {
	p.lives = rand.New(rand.NewPCG(seed, 0x6c69766573)).IntN(2) == 0
	p.companions = rand.New(rand.NewPCG(seed, 0x636f6d70616e)).IntN(2) == 0
	p.needed = rand.New(rand.NewPCG(seed, 0x6e6565646564)).IntN(3) == 0
	p.revised = p.quorum && rand.New(rand.NewPCG(seed, 0x726576697365)).IntN(2) == 0
	p.words = p.quorum && rand.New(rand.NewPCG(seed, 0x776f726473)).IntN(2) == 0
	for i, f := range faultKinds() {
		if f.changes&copies != 0 && p.intervals[i] > 0 {
			p.words = false // an older copy of a disk lacks words, as it lacks promises
		}
		if f.lives && !p.lives || f.companions && !p.companions {
			p.intervals[i] = 0
		}
	}
}

func (a *agent) holder() election.Holder { return election.Holder{Peer: a.peer, Lineage: a.boot} }

// lifeNumber returns the number of the agent's life in its lineage.
func (a *agent) lifeNumber() uint64 {
	if a.past == nil {
		return 1
	}
	return a.past.Life
}

// beginLife begins the next life of the agent's lineage; without a record, another lineage. It
// returns what the former life left on record.
func (w *world) beginLife(a *agent, run election.RunID, born int64) *election.Past {
	past := a.past
	a.run, a.born, a.unseen = run, w.Now, false
	if past != nil {
		w.stats.Lives++
		next := *past
		next.Life++
		next.Lease = min(next.Lease, a.settings.timing.Lease)
		a.past, a.joinedAt = &next, past.JoinedAt
		return past
	}
	w.endStatusClaims(a, w.logsOf(a)) // the lease pages are wiped
	clear(a.deadlines)
	a.boot, a.joinedAt, a.recordedActors = election.LineageID(run), born, map[election.Name]record.Actors{}
	if w.plan.lives {
		a.past = &election.Past{Lineage: election.Lineage{ID: a.boot, Life: 1, JoinedAt: born, Lease: a.settings.timing.Lease}}
	}
	return nil
}

// endLife ends what ends with the process. If the agent has a record and did not stop cleanly, its lease
// pages stay: their readers go on acting, as programs do. A clean stop ends the lineage.
func (w *world) endLife(a *agent) {
	logs := w.logsOf(a)
	if a.past != nil && !a.ending {
		logs = logs[len(logs)-1:]
	}
	w.endStatusClaims(a, logs)
	if a.ending {
		a.past = nil
	}
}

// loseRecord makes sure that the next life finds no record that it can read (K7).
func (w *world) loseRecord(a *agent) {
	switch {
	case a.past == nil || a.alive:
	case w.options.careless == forgetsRows:
		a.past, a.recordedActors = &election.Past{Lineage: a.past.Lineage}, map[election.Name]record.Actors{}
	default:
		w.note(a, "its RECORD is lost")
		a.past = nil
	}
}

func (w *world) record(a *agent, r *election.LifeRecord) {
	if a.past != nil && (!a.dying || w.options.careless != recordsLate) {
		a.past.LifeRecord = virtual.Recorded(a.past.LifeRecord, r)
	}
}

// beforeAll reports whether an action matters only in worlds with lives. In other worlds it is skipped, and
// not counted as a moment at which the process may die.
func beforeAll(action any) bool {
	switch action.(type) {
	case *election.LifeRecord, virtual.Publish:
		return true
	}
	return false
}

// recorded is the row of the election in the agent's record.
func (a *agent) recorded(name election.Name) election.Authority {
	row, _ := each.First(a.past.Rows, func(row election.Authority) bool { return row.Election == name })
	return row
}

// checkRecorded checks that readers see no leadership that is not on record (K1).
func (w *world) checkRecorded(a *agent, l *contestLog, c *elector.ContestStatus) {
	if a.past == nil {
		return
	}
	if row := a.recorded(l.name); row.Term != c.Term || row.Until < c.ValidUntil || row.Ending.Reason != "" {
		w.fail("K1", "%s leads %s in term %d until %d, on record is %+v", a.peer, l.name, c.Term, c.ValidUntil, row)
	}
}

// checkRecordedFirst checks that all that a message rests on is on record before the message leaves (K1, K8),
// and that no term is released while a program or companion acts for its holder (K4b).
func (w *world) checkRecordedFirst(a *agent, local election.Instant, m election.Message) {
	if a.past == nil {
		return
	}
	switch m := m.(type) {
	case election.VoteRequest:
		if row := a.recorded(m.Election); max(row.Highest, a.past.Spent) < m.Term {
			w.fail("K1", "%s asks for term %d of %s, on record is %+v", a.peer, m.Term, m.Election, row)
		}
	case election.Heartbeat:
		for _, c := range m.Claims {
			row := a.recorded(c.Election)
			// The record may have a higher term than the claim: the leader may have overtaken its term in the same step.
			if c.Election != election.RosterElection && c.Remaining > 0 && (row.Term < c.Term || row.Until < local.Add(c.Remaining)) {
				w.fail("K1", "%s claims term %d of %s for %v, on record is %+v", a.peer, c.Term, c.Election, c.Remaining, row)
			}
			if c.Election == election.RosterElection && max(row.Highest, a.past.Spent) < c.Term {
				w.fail("K8", "%s claims term %d of the roster election, on record is %+v", a.peer, c.Term, row)
			}
		}
	case election.Release:
		l := w.log(a, m.Election)
		if row := a.recorded(m.Election); row.Term != 0 && (w.plan.quorum || row.Term == m.Term) {
			w.fail("K1", "%s releases term %d of %s, on record is %+v", a.peer, m.Term, m.Election, row)
		}
		if l == nil || !w.plan.quorum {
			return
		}
		if x := w.actsFor(l, m.Holder); x != nil {
			w.fail("K4b", "%s releases term %d of %s while %s acts in term %d", a.peer, m.Term, m.Election, x.kind, x.term)
		}
	}
}

func describePast(past *election.Past) string {
	if past == nil {
		return ""
	}
	text := fmt.Sprintf(", life %d, on record", past.Life+1)
	for _, r := range past.Rows {
		text += fmt.Sprintf(" %s@%d", r.Election, r.Highest)
		if r.Term != 0 {
			text += fmt.Sprintf(" leads %d until %d %s", r.Term, r.Until, r.Ending.Reason)
		}
	}
	return text
}

// beginsLeading records the leaderships that the next life has from its first instant on.
func (w *world) beginsLeading(a *agent, past *election.Past) {
	if past == nil {
		return
	}
	w.poll(a)
	w.checkGoesOn(a, past)
	logs := w.logsOf(a)
	for _, l := range logs[:len(logs)-1] {
		if c := a.leads(l.name); c != nil && c.Term > l.last { // the former life did not announce this term
			w.checkTerm(a, l, election.Announcement{Election: l.name, Term: c.Term}, a.holder())
			l.highest = max(l.highest, c.Term)
		}
	}
}

// leads returns the status of the election that was polled last, if the agent leads there, else nil.
func (a *agent) leads(name election.Name) *elector.ContestStatus {
	if c := a.status(name); c != nil && c.State == elector.Leading && c.Leader == a.holder() {
		return c
	}
	return nil
}

// status returns the status of the election that was polled last; nil: the agent shows none.
func (a *agent) status(name election.Name) *elector.ContestStatus {
	c, _ := each.First(a.contests, func(c *elector.ContestStatus) bool { return c.Election == name })
	return c
}

// checkGoesOn checks that, from its first instant on, the next life leads what is on record (K4a,
// G7).
func (w *world) checkGoesOn(a *agent, past *election.Past) {
	if !w.plan.quorum || w.rolledBack || a.suspect() || past.Lease != a.settings.timing.Lease {
		return
	}
	local := a.clock.at(w.Now)
	for _, row := range past.Rows {
		l := w.log(a, row.Election)
		if l == nil || row.Term == 0 || row.Ending.Reason != "" || row.Election == election.RosterElection {
			continue
		}
		if row.Until.Sub(local) < past.Lease/4 || !a.stand[l.index].stands {
			continue
		}
		if !a.disk.state.Roster.Allows(row.Election, a.peer, a.stand[l.index].priority) {
			continue // it hands over, as the former life was about to
		}
		w.stats.Carried++
		if c := a.leads(row.Election); c == nil || c.Term < row.Term {
			w.fail("G7", "the next life of %s does not lead %s as is on record (%+v): %+v", a.peer, row.Election, row, c)
		}
	}
}

// perish kills a process: at once, or while it carries out a step's output. The next life begins
// soon, mostly with the record.
func (w *world) perish(r *rand.Rand) {
	a := w.victim(r)
	lease := w.plan.timing.Lease
	lasts := pick(r, 0, around(r, w.plan.timing.Heartbeat/10), around(r, w.plan.timing.Heartbeat), around(r, lease/2), time.Duration(r.Int64N(int64(2*lease))))
	d := doom{steps: r.IntN(12), done: r.IntN(9), loud: chance(r, 0.9), lost: chance(r, 0.15), lasts: lasts}
	if !a.alive {
		return
	}
	if chance(r, 0.7) {
		a.doom = &d
		return
	}
	w.stopFor(a, d.loud, d.lost, lasts)
}

// upgrade starts all agents again, one after the other, as `doyen restart` does.
func (w *world) upgrade(r *rand.Rand) {
	at := around(r, w.plan.timing.Heartbeat)
	for _, i := range r.Perm(len(w.agents)) {
		a, down := w.agents[i], around(r, w.plan.timing.Heartbeat/4)
		w.later(at, func() {
			if a.alive && a.paused == 0 {
				w.stopFor(a, true, false, down)
			}
		})
		at += around(r, w.plan.timing.Lease/2)
	}
}

// hang stops a process as a deadlock does. Its keeper kills it and starts the next life.
func (w *world) hang(r *rand.Rand) {
	a, down := w.victim(r), around(r, w.plan.timing.Heartbeat/10)
	if !a.alive {
		return
	}
	w.pauseFor(a, "HANGS")
	w.later(min(3*w.plan.timing.Heartbeat, w.plan.timing.Lease/3), a.inLife(func() {
		if a.frozen == 0 {
			w.stopFor(a, true, false, down)
			return
		}
		w.later(w.plan.timing.Lease, a.inLife(func() { w.stop(a, true); w.start(a) }))
	}))
}

// deaths is how many leaders die after the faults.
const deaths = 3

// checkDeaths lets leaders die at any moment of a step while there are no faults, and come back
// with their record before their lease ends. Nothing else may change (G7): each leader goes on in
// the same term, every agent still names it, and no program stops.
func (w *world) checkDeaths() {
	if w.violation != nil || !w.plan.lives || !w.plan.quorum || w.heal.agreedAt < 0 || w.rolledBack {
		return
	}
	w.deaths = true
	for range deaths {
		l := w.logs[w.rng.IntN(len(w.logs)-1)]
		a := w.find(l.holder.Peer)
		if w.handingOver() || a == nil || !a.alive || a.leads(l.name) == nil || w.disputed(a) {
			w.watch(w.Now + int64(w.plan.timing.Lease))
			continue
		}
		term, programs := a.leads(l.name).Term, w.acting(a)
		a.doom = &doom{steps: w.rng.IntN(12), done: w.rng.IntN(9), loud: true, lasts: around(w.rng, w.plan.timing.Lease/64)}
		w.watch(w.Now + 2*int64(w.plan.timing.Lease))
		if w.between() { // it had few steps to handle, so it died only now
			w.watch(w.Now + int64(w.plan.timing.Lease))
		}
		if w.violation != nil || w.handingOver() {
			return
		}
		if c := a.leads(l.name); c == nil || c.Term != term {
			w.fail("G7", "%s led %s in term %d, died, and was back at once: %+v", a.peer, l.name, term, c)
		}
		for i, p := range programs {
			if now := w.acting(a); i >= len(now) || now[i] != p {
				w.fail("G7", "the programs of %s did not go on under its next life: %v, and now %v", a.peer, programs, now)
			}
		}
	}
}

// acting returns the numbers of the programs that act on the host, in the order of elections.
func (w *world) acting(a *agent) []int {
	var all []int
	for _, l := range w.logsOf(a) {
		if p := l.find(program, a.holder()); p != nil && p.acting(w.Now) {
			all = append(all, p.number)
		}
	}
	return all
}

// disputed reports whether the agent's next life may need a higher term for a reason other than the death.
func (w *world) disputed(a *agent) bool {
	return a.past == nil || a.past.Lease != a.settings.timing.Lease || a.recorded(election.RosterElection).Term != 0
}

// between reports whether, after the faults, an agent is between two lives, or its newest life
// has just begun. Such an agent may not know the leaders of other elections yet.
func (w *world) between() bool {
	return w.deaths && slices.ContainsFunc(w.agents, func(a *agent) bool {
		return !a.alive || w.Now-a.born < 2*int64(w.plan.timing.Heartbeat)
	})
}

// reconnects reports whether a leader has died and the agent was only just connected to the
// leader's next life: the heartbeat of that life may still be on its way.
func (w *world) reconnects(a *agent, name election.Name) bool {
	l := w.log(a, name)
	if !w.deaths || l == nil {
		return false
	}
	b := w.find(l.holder.Peer)
	if b == nil || b == a {
		return false
	}
	for _, e := range w.conns[a.id][b.id].ends {
		if !e.told || w.Now-e.tellAt < int64(w.plan.timing.Heartbeat/2) {
			return true
		}
	}
	return false
}
