package elector

import (
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// An agent that does what is due a quarter of a lease late would lose its lease with the next such
// delay. So it doubts itself until it has been on time for a lease: it is not a candidate where
// another agent is one, and a leader that is late again hands over. One delay alone moves no
// program. Where there is nobody else, a late leader is better than none.

// doubt is what an agent holds against itself.
type doubt struct {
	since election.Instant // when the first delay was of those that are at most a lease apart
	until election.Instant // it is over then, unless another delay comes
}

func (e *Elector) late(by time.Duration) {
	lease := e.cfg.Lease
	if by <= lease/4 || !e.settled { // while a cluster starts, all are late
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
		return // all may share that disk, and this lease needs none: see watchDisk
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

// doubtEnds is when the agent has been on time for a lease; Never: it is on time.
func (e *Elector) doubtEnds() election.Instant {
	if e.doubts() {
		return e.doubt.until
	}
	return election.Never
}

// othersStand reports whether another agent is a candidate that can be elected. Those that doubt
// themselves report priority 0.
func (c *entry) othersStand() bool {
	for range c.Candidates() {
		return true
	}
	return false
}
