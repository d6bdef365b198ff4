package elector

import (
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// An election exists from its first candidate until some time after its last one. Its
// terms are kept longer: in the grants on record while there is capacity, then as a bound
// above which every later election starts (retired, spent, Forgotten).

// held returns the election's contest and has it advanced; nil: there is none.
func (e *Elector) held(name election.Name) *entry {
	c := e.contests.get(name)
	if c != nil {
		c.touch()
	}
	return c
}

// contest returns what held does, but makes a contest if there is none; nil: no capacity.
func (e *Elector) contest(name election.Name) *entry {
	if c := e.held(name); c != nil {
		return c
	}
	if !e.hasRoom(name) {
		e.counters.Dropped["too_many_elections"]++
		return nil
	}
	return e.found(name)
}

// found makes the contest of an election.
func (e *Elector) found(name election.Name) *entry {
	state := e.ledger.State()
	c := &entry{Contest: *contest.New(name, &e.cfg, &e.counters.Counts, newSelection(e.cfg, name, e.cfg.FirstNumber()+e.rounds), max(state.Grant(name).Term, state.Seen[name], e.retired), e.spent),
		e: e, idleSince: election.Never, wakeAt: election.Never, recorded: election.Authority{Election: name}}
	e.contests.put(name, c)
	c.touch()
	return c
}

// hasRoom reports whether there is capacity for one more election. At the limit it first drops
// unused ones, several at once. One place is reserved for the roster election.
func (e *Elector) hasRoom(name election.Name) bool {
	limit := e.cfg.MaxElections
	if name != election.RosterElection {
		limit--
	}
	if e.names() < limit || e.onRecord(name) {
		return true
	}
	e.dropUnused()
	if e.names() < limit {
		return true
	}
	return e.voter.Forget(e.now, e.contests.has, 1+e.cfg.MaxElections/16) > 0
}

// dropUnused drops the contests without candidates in which this agent asked for no term.
// Their terms are known from the voters' records, and those bind later candidates too.
func (e *Elector) dropUnused() {
	if !e.cfg.Quorum {
		return
	}
	for _, c := range e.contests.rows {
		if c.Asked() <= e.spent && c.Fresh() && !e.exists(c) {
			e.drop(c)
		}
	}
}

func (e *Elector) onRecord(name election.Name) bool {
	_, ok := e.ledger.State().Grants[name]
	return ok
}

// names counts the elections that exist or are on record: they must fit into a Report.
func (e *Elector) names() int {
	n := len(e.ledger.State().Grants)
	for _, name := range e.contests.keys {
		if !e.onRecord(name) {
			n++
		}
	}
	return n
}

// sweep drops the contests that were idle for so long that no message about a leadership
// can still be on its way.
func (e *Elector) sweep() {
	if e.now < e.sweepAt {
		return
	}
	e.sweepAt = e.now.Add(e.cfg.Lease)
	e.forgetProgress()
	for _, c := range e.contests.rows {
		switch {
		case e.exists(c), c.Highest() < c.Asked(): // a term asked for in vain must not count for other elections
			c.idleSince = election.Never
		case c.idleSince == election.Never:
			c.idleSince = e.now
		case e.now >= c.idleSince.Add(2*e.cfg.Lease):
			e.retired = max(e.retired, c.Highest())
			e.spent = max(e.spent, c.Asked()) // a term asked for is never asked for again (H1)
			e.drop(c)
		}
	}
}

func (e *Elector) exists(c *entry) bool {
	switch {
	case c.Name() == election.Default, c.Name() == election.RosterElection:
		return true
	case c.Stands(), c.Role() != contest.Follower, c.Leader().Holder != (election.Holder{}), c.Heeds(e.now), c.Active():
		return true
	}
	for _, m := range e.view.Members {
		if _, stands := e.rank(m, c.Name()); stands {
			return true
		}
	}
	return false
}

// remember records the term led without quorum. If there are too many terms, it forgets those
// of elections that no longer exist, and keeps only the highest of them.
func (e *Elector) remember(name election.Name, t election.Term) {
	e.ledger.Change(func(s *election.State) {
		if len(s.Seen) >= e.cfg.MaxElections {
			for other, t := range s.Seen {
				if !e.contests.has(other) {
					s.Forgotten = max(s.Forgotten, t)
					delete(s.Seen, other)
				}
			}
		}
		s.Seen[name] = t
	})
}
