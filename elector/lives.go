package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// lives is what came to this life of the agent from the former one, and what goes to its next one.
type lives struct {
	onRecord election.LifeRecord // what is on record; its rows are those of the last step that changed some
	dropped  []election.Name     // elections whose rows are to be removed
	shortest time.Duration       // of the leases that rosters named in this life; 0: none did

	former    []*entry         // what the former life led; nil from the first step on
	ends      election.Instant // when the last of its leases ends; 0: the others know of a renewal since
	unclaimed []election.Name
	lapsesAt  election.Instant
}

// takeOver goes on from what the former life left on record, before anything is received (K4).
// The elections have no limit here: what was led must not be forgotten.
func (e *Elector) takeOver(past *election.Past) {
	e.retired, e.spent = past.Retired, past.Spent
	e.lives.onRecord.Retired, e.lives.onRecord.Spent = past.Retired, past.Spent
	for _, a := range past.Rows {
		c := e.found(a.Election)
		c.recorded = a
		ends := a.Ending.Reason != ""
		if a.Election == election.RosterElection || !ends && (a.Until == election.Never) == e.cfg.Quorum {
			a.Term = 0 // K8; or it was led under the other setting of Quorum
		}
		var lease *quorum.Lease
		if e.cfg.Quorum && a.Term != 0 {
			lease = quorum.ResumeLease(a.Term, past.Lease, e.cfg.Drift, e.roster, a.Until)
		}
		if a.Term != 0 {
			e.settled = true
			e.lives.former = append(e.lives.former, c)
			e.resumeCandidacy(c, a)
		}
		c.Resume(a, lease)
		if lease != nil {
			e.lives.ends = max(e.lives.ends, lease.End())
		}
		if lease != nil && e.roster.Lease() == 0 && e.cfg.Lease != past.Lease {
			c.Overtake(c)
		}
	}
}

// resumeCandidacy takes over the candidacy of a leadership. A Campaign must claim it before
// the last deadline that the programs were given has passed.
func (e *Elector) resumeCandidacy(c *entry, a election.Authority) {
	if a.Priority == 0 {
		return
	}
	e.stand(c, true, a.Priority)
	deadline := a.Until
	if deadline == election.Never {
		deadline = e.now.Add(e.cfg.Lease)
	}
	if l := &e.lives; len(l.unclaimed) == 0 {
		l.lapsesAt = deadline
	}
	e.lives.lapsesAt = max(e.lives.lapsesAt, deadline)
	e.lives.unclaimed = append(e.lives.unclaimed, a.Election)
}

// resume does in the first step what the former life left undone.
func (e *Elector) resume() {
	former := e.lives.former
	e.lives.former = nil
	for _, c := range former {
		e.carry(c, c.Resumed(c))
	}
}

// passOn has the first renewal of this life sent to all agents at once. They know only what
// was left of the former life's leases, which may end before the next heartbeat comes.
func (e *Elector) passOn() {
	if e.lives.ends == 0 {
		return
	}
	for _, c := range e.contests.rows {
		if c.Claimable() && c.LeaseEnd(e.now) > e.lives.ends {
			e.lives.ends, e.beatAt = 0, e.now
			return
		}
	}
}

// lapse withdraws the candidacies of the former life that were not claimed. Nobody acts by
// them any more, since the last deadline that was given has passed (K4d).
func (e *Elector) lapse() {
	if e.now < e.lives.lapsesAt {
		return
	}
	e.lives.lapsesAt = election.Never
	for _, name := range slices.Clone(e.lives.unclaimed) {
		e.withdrawCandidacy(election.Withdraw{Election: name})
	}
}

func (l *lives) claim(name election.Name) {
	l.unclaimed = slices.DeleteFunc(l.unclaimed, func(n election.Name) bool { return n == name })
}

func (l *lives) drop(c *entry) {
	if c.recorded.Highest != 0 {
		l.dropped = append(l.dropped, c.Name())
	}
}

// record returns what this step has changed on record; nil: nothing.
func (e *Elector) record() *election.LifeRecord {
	r := &e.lives.onRecord
	rows := r.Rows[:0]
	for _, c := range e.contests.rows {
		if c.altered {
			c.altered = false
			if a := e.authority(c); a != c.recorded {
				c.recorded = a
				rows = append(rows, a)
			}
		}
	}
	for _, name := range e.lives.dropped {
		if c := e.contests.get(name); c == nil || c.recorded.Highest == 0 {
			rows = append(rows, election.Authority{Election: name})
		}
	}
	if len(e.lives.dropped) > 0 {
		slices.SortFunc(rows, func(a, b election.Authority) int { return cmp.Compare(a.Election, b.Election) })
		e.lives.dropped = nil
	}
	r.Rows = rows
	if len(rows) == 0 && r.Retired == e.retired && r.Spent == e.spent && r.Shortest == e.lives.shortest {
		return nil
	}
	r.Retired, r.Spent, r.Shortest = e.retired, e.spent, e.lives.shortest
	return r
}

// authority is the election's row. The row is empty if every later election starts above what
// was asked for in this one.
func (e *Elector) authority(c *entry) election.Authority {
	a := c.Authority()
	if a.Term == 0 && a.Highest <= e.spent {
		return election.Authority{Election: a.Election}
	}
	return a
}
