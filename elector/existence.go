package elector

import (
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// An election exists from its first candidate until some time after its last one. Its terms are
// kept for longer: in the grants on record while there is room, and then only in a bound
// (retired, spent, Forgotten). The terms of every later election start above that bound.

// held returns the election's contest, and makes it advance; nil if there is none.
func (e *Elector) held(name election.Name) *entry {
	c := e.contests.get(name)
	if c != nil {
		c.touch()
	}
	return c
}

// contest returns the election's contest, as held does, or makes one. It returns nil if all places are taken.
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

// found makes the contest of an election that has none.
func (e *Elector) found(name election.Name) *entry {
	state := e.ledger.State()
	c := &entry{Contest: *contest.New(name, &e.cfg, &e.counters.Counts, newSelection(e.cfg, name, e.cfg.FirstNumber()+e.rounds), max(state.Grant(name).Term, state.Seen[name], e.retired), e.spent),
		e: e, idleSince: election.Never, wakeAt: election.Never, recorded: election.Authority{Election: name}}
	e.contests.put(name, c)
	c.touch()
	return c
}

// hasRoom reports whether there is room for one more election. At the limit it first drops
// unused elections, several at once. One place is reserved for the roster election.
func (e *Elector) hasRoom(name election.Name) bool {
	limit := e.cfg.MaxElections
	if name != election.RosterElection {
		limit--
	}
	if e.names() < limit || e.onRecord(name) {
		return true
	}
	e.dropUnused()
	return e.names() < limit || e.voter.Forget(e.now, e.contests.has, 1+e.cfg.MaxElections/16) > 0
}

// dropUnused drops the contests without candidates in which this agent asked for no term. Their
// terms stay in the voters' records, which bind later candidates too.
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

// names counts the elections that exist or are on record. All must fit into one Report.
func (e *Elector) names() int {
	n := len(e.ledger.State().Grants)
	for _, name := range e.contests.keys {
		if !e.onRecord(name) {
			n++
		}
	}
	return n
}

// sweep drops contests that have been idle for so long that no message about a leadership can still be on its way.
func (e *Elector) sweep() {
	if e.now < e.sweepAt {
		return
	}
	e.sweepAt = e.now.Add(e.cfg.Lease)
	e.forgetProgress()
	for _, c := range e.contests.rows {
		switch {
		case e.exists(c), c.Highest() < c.Asked(): // a term that this agent went back from must not raise those of other elections
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
	case c.Name() == election.Default, c.Name() == election.RosterElection,
		c.Stands(), c.Role() != contest.Follower, c.Leader().Holder != (election.Holder{}), c.Heeds(e.now), c.Active():
		return true
	}
	return len(e.candidates.ids[c.Name()]) > 0
}

// remember records the term that this agent leads without quorum. If too many terms are recorded, it
// removes those of elections without a contest, and keeps only the highest of the removed terms.
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
