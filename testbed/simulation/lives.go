package simulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/virtual"
)

// In half of the worlds agents keep a record, by which the next life goes on as the same
// holder. The record outlives the process, but not the host's boot.

// carelessness is a rule of lives that hosts break, to show that the checkers notice the
// consequences.
type carelessness uint8

const (
	careful     carelessness = iota
	recordsLate              // what a step puts on record is lost if the process dies in the step (K1)
	forgetsRows              // the next life of a lineage finds none of its rows (K7)
)

// drawLives decides whether agents keep a record. It changes nothing else that a seed draws.
func (p *plan) drawLives(seed uint64) {
	p.lives = rand.New(rand.NewPCG(seed, 0x6c69766573)).IntN(2) == 0
	p.companions = rand.New(rand.NewPCG(seed, 0x636f6d70616e)).IntN(2) == 0
	p.revised = p.quorum && rand.New(rand.NewPCG(seed, 0x726576697365)).IntN(2) == 0
	for i, f := range faultKinds() {
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

// endLife ends what ends with the process. With a record the lease pages stay, and those that
// read them act on, as programs do. A clean stop ends the lineage.
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

// beforeAll reports whether an action exists in worlds with lives only. Worlds without them do
// not count it as a moment at which the process may die.
func beforeAll(action any) bool {
	switch action.(type) {
	case *election.LifeRecord, virtual.Publish:
		return true
	}
	return false
}

// recorded is the agent's row of the election, on its record.
func (a *agent) recorded(name election.Name) election.Authority {
	for _, row := range a.past.Rows {
		if row.Election == name {
			return row
		}
	}
	return election.Authority{}
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

// checkRecordedFirst checks that what a message rests on is on record before it leaves (K1),
// and that no term is released while a program of the lineage acts (K4b).
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
			// In the same step the leader may have gone on in a higher term.
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
