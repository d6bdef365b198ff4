package elector

import (
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// An agent that is a quarter of a lease late would lose its lease with the next such delay. So it doubts itself until
// it has been on time for a lease: it is not a candidate where another agent is one, and a leader that is late again
// hands over. A single delay moves no program. Where no other agent can lead, a late leader is better than none.

// doubt is since when, and until when, this agent doubts that it can be on time.
type doubt struct {
	since election.Instant // when the first delay of this series was; its delays are at most a lease apart
	until election.Instant // when the doubt ends; each further delay makes this later
}

func (e *Elector) late(by time.Duration) {
	lease := e.cfg.Lease
	if by <= lease/4 || !e.settled { // while a cluster starts, all agents are late
		return
	}
	if !e.doubts() {
		e.doubt.since = e.now
	}
	e.doubt.until = e.now.Add(lease)
	if e.now < e.doubt.since.Add(lease/4) {
		return
	}
	if e.now.Sub(e.ledger.WaitsSince()) > lease/4 {
		return // the disk is late: all agents may share it, and a lease needs no disk (see watchDisk)
	}
	for _, c := range e.contests.rows {
		if c.Role() != contest.Leader || c.Name() == election.RosterElection {
			continue
		}
		if heir := c.BestOf(c, c.MayTake); heir.Peer != "" {
			e.carry(c, c.StepDown(c, election.ReasonLate, heir.Peer))
		}
	}
}

func (e *Elector) doubts() bool { return e.now < e.doubt.until }

// doubtEnds is when this agent will have been on time for a lease; Never if it has no doubt.
func (e *Elector) doubtEnds() election.Instant {
	if e.doubts() {
		return e.doubt.until
	}
	return election.Never
}
