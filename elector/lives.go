package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// lives is what this life of the agent has from the former one, and what it leaves to the next one.
type lives struct {
	onRecord election.LifeRecord // what is on record; but Rows are only those that the last step has changed
	dropped  []election.Name     // elections whose rows must be removed from the record
	shortest time.Duration       // the shortest lease that a roster has set in this life; 0: none has

	former    []*entry         // the elections that the former life led; nil after the first step
	ends      election.Instant // when the last of the former life's leases ends; 0: there is none, or a renewal of this life was sent to all
	unclaimed []election.Name
	lapsesAt  election.Instant
}

// takeOver continues from what the former life left on record, before anything is received (K4).
// It does not apply the limit of elections: an election that was led must not be forgotten.
func (e *Elector) takeOver(past *election.Past) {
	e.retired, e.spent = past.Retired, past.Spent
	e.lives.onRecord.Retired, e.lives.onRecord.Spent = past.Retired, past.Spent
	for _, a := range past.Rows {
		c := e.found(a.Election)
		c.recorded = a
		ends := a.Ending.Reason != ""
		if !ends && (a.Until == election.Never) == e.cfg.Quorum {
			a.Term = 0 // the former life led this term under the other setting of Quorum
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
			c.Overtake()
		}
	}
}

// resumeCandidacy takes over the candidacy behind a leadership. When the last deadline that programs
// were given has passed, the candidacy ends if the agent has not repeated its Campaign (lapse).
func (e *Elector) resumeCandidacy(c *entry, a election.Authority) {
	if a.Priority == 0 {
		return
	}
	e.stand(c, true, election.Candidacy{Election: a.Election, Priority: a.Priority}, false)
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

// passOn sends the first renewal of this life to all agents at once. They know only the rest of
// the former life's leases, which may end before the next heartbeat arrives.
func (e *Elector) passOn() {
	if e.lives.ends != 0 && slices.ContainsFunc(e.contests.rows, func(c *entry) bool {
		return c.Claimable() && c.LeaseEnd(e.now) > e.lives.ends
	}) {
		e.lives.ends, e.beatAt = 0, e.now
	}
}

// lapse withdraws the candidacies of the former life that no Campaign has claimed. Nobody acts
// under them any more, because the last deadline that programs were given has passed (K4d).
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

// record returns what this step has changed on record; nil if nothing has.
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

// authority is the election's row. The row is empty if this agent has no term here, and has asked
// here only for terms up to the bound spent.
func (e *Elector) authority(c *entry) election.Authority {
	a := c.Authority()
	if a.Term == 0 && a.Highest <= e.spent {
		return election.Authority{Election: a.Election}
	}
	return a
}
