package elector

import (
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Status returns a snapshot for readers outside the loop. It shares nothing that changes.
func (e *Elector) Status(now election.Instant) *Status {
	s := &Status{At: now, Self: e.cfg.Self, Draining: e.draining, Roster: e.roster,
		Quorum: e.quorumStatus(), Contests: e.Contests(), Counters: e.recentCounters(now)}
	s.Change = e.changeStatus()
	s.Warnings = e.warnings(s.Quorum)
	return s
}

// Contests returns the part of Status about the elections that exist, as of the last step.
// It shares what has not changed with what it returned before.
func (e *Elector) Contests() []*ContestStatus {
	facts := e.facts.renew(e)
	changed := e.shown == nil
	for _, c := range e.contests.rows {
		if c.refresh || facts != e.shownFacts {
			c.listing.renew(e, c, facts)
			changed = e.show(c) || changed
			c.refresh = c.listing.fleeting || c.Heeds(e.now) // it changes with time alone
		}
	}
	e.shownFacts = facts
	if !changed {
		return e.shown
	}
	e.shown = make([]*ContestStatus, 0, len(e.contests.rows))
	for _, c := range e.contests.rows {
		if c.shown != nil {
			e.shown = append(e.shown, c.shown)
		}
	}
	return e.shown
}

// Drives returns in which term this agent leads the roster election, which Contests omits,
// and until when; term 0: it does not.
func (e *Elector) Drives() (election.Term, election.Instant) {
	c := e.contests.get(election.RosterElection)
	if c == nil || c.Role() != contest.Leader {
		return 0, 0
	}
	return c.Term(), c.LeaseEnd(e.now)
}

// show renews what readers are shown of an election, and reports whether that has changed.
func (e *Elector) show(c *entry) bool {
	before := c.shown
	if c.Name() == election.RosterElection || !c.listing.stood && !e.exists(c) {
		c.shown = nil
		return before != nil
	}
	s := e.contestStatus(c)
	if before != nil && s.agrees(before) {
		return false
	}
	shown := s // readers may have the one before
	c.shown = &shown
	return true
}

// countersEvery is how old the counters of a Status may be: a copy costs more than most
// steps.
const countersEvery = time.Second

func (e *Elector) recentCounters(now election.Instant) Counters {
	if e.counted.Sent == nil || now >= e.countedAt.Add(countersEvery) {
		e.counted, e.countedAt = e.Counters(), now
	}
	return e.counted
}

// Counters returns what was counted since the start.
func (e *Elector) Counters() Counters {
	c := e.counters
	c.Sent, c.Received, c.Dropped = maps.Clone(c.Sent), maps.Clone(c.Received), maps.Clone(c.Dropped)
	c.VotesGranted, c.VotesRefused = e.voter.Counted()
	return c
}

func (s *ContestStatus) agrees(t *ContestStatus) bool {
	return s.Election == t.Election && s.State == t.State && s.Leader == t.Leader && s.Term == t.Term &&
		s.ValidUntil == t.ValidUntil && s.HeardAt == t.HeardAt && slices.Equal(s.Candidates, t.Candidates)
}

func (e *Elector) contestStatus(c *entry) ContestStatus {
	known := c.Leader()
	s := ContestStatus{Election: c.Name(), Leader: known.Holder, Term: known.Term,
		ValidUntil: known.Until, HeardAt: known.Heard, Candidates: c.listing.candidates}
	if known.Holder == (election.Holder{}) {
		s.Term = c.Highest()
	}
	s.State = e.state(c, c.listing.able)
	return s
}

func (e *Elector) state(c *entry, candidates bool) State {
	switch {
	case c.Role() == contest.Leader:
		return Leading
	case c.Leader().Holder != (election.Holder{}) && !c.Vacant():
		return Following
	case e.cfg.Quorum && !e.facts.own.majority:
		return NoQuorum
	case candidates || c.Role() != contest.Follower || c.Active():
		return Electing
	}
	return Idle
}

func (e *Elector) quorumStatus() QuorumStatus {
	q := QuorumStatus{Enabled: e.cfg.Quorum}
	if e.roster == nil {
		return q
	}
	voters := e.roster.Counted()
	q.Voters, q.Needed = len(voters), quorum.Majority(len(voters))
	supports := func(id election.PeerID) bool { return e.reachable(id) && !e.withheld[id] }
	q.Exists = quorum.Confirmed(e.roster, supports)
	for _, v := range voters {
		if !supports(v.Peer) {
			continue
		}
		q.Reachable++
		without := func(id election.PeerID) bool { return id != v.Peer && supports(id) }
		q.Edge = q.Edge || q.Exists && !quorum.Confirmed(e.roster, without)
	}
	return q
}
