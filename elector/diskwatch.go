package elector

import (
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A leader renews its leases without its disk, and would lead on for ever when that
// hangs. But what it leads for may need the disk, and its own vote is lost to the
// others. So a leader writes now and then only to see whether it still can, and
// gives its elections to somebody else if not.
//
// Not if that would leave them with nobody: where all disks hang together, those of
// one storage say, no vote can be given. The others are asked to write first, and a
// majority of the voters must have done so.

// diskPatience is how long a disk may take for what it is given before it counts
// as stuck, and how often a leader writes. Nobody may be elected while all disks
// are slow, so it is long.
func (t Timing) diskPatience() time.Duration {
	if t.DiskPatience > 0 {
		return t.DiskPatience
	}
	return max(5*t.Lease, 5*time.Second)
}

// diskWatch is a leader's question to the others whether they can write.
type diskWatch struct {
	question uint64 // its number; 0: none
	asked    election.Instant
	askAt    election.Instant // again
	wrote    map[election.PeerID]bool
}

// writes reports whether this agent may write its promises and its disk takes
// them, as far as is known.
func (e *Elector) writes() bool {
	return e.barred.Code == "" && !e.ledger.Failing() && !e.diskStuck()
}

func (e *Elector) diskStuck() bool { return e.now >= e.diskStuckFrom() }

// diskStuckFrom is from when the disk counts as stuck if it takes nothing more.
func (e *Elector) diskStuckFrom() election.Instant {
	return e.ledger.WaitsSince().Add(e.cfg.Timing.diskPatience())
}

// watchDisk has a leader's disk tried, and the others' once its own is stuck. It
// returns when it is to be called next.
func (e *Elector) watchDisk() election.Instant {
	leads, w := e.leadsAny(), &e.disk
	if !leads || !e.diskStuck() {
		*w = diskWatch{}
	}
	switch tryAt := e.ledger.TriedAt().Add(e.cfg.Timing.diskPatience()); {
	case !leads:
		return election.Never
	case e.ledger.Settled() && e.now < tryAt:
		return tryAt
	case e.ledger.Settled():
		e.ledger.Change(func(*election.State) {})
	}
	if !e.diskStuck() {
		return election.Never // diskStuckFrom has it called again
	}
	if w.question == 0 || e.now >= w.asked.Add(e.cfg.Timing.diskPatience()) {
		e.inquired++
		*w = diskWatch{question: e.inquired, asked: e.now, wrote: map[election.PeerID]bool{}}
	}
	if e.now >= w.askAt {
		w.askAt = e.now.Add(e.cfg.Timing.Lease)
		for _, id := range e.connectedPeers() {
			if !w.wrote[id] {
				e.send(id, election.Inquiry{ID: w.question, Durable: true})
			}
		}
	}
	e.leaveToWriters()
	return w.askAt
}

// hasWritten takes note that a peer's disk takes writes.
func (e *Elector) hasWritten(from election.PeerID, question uint64) {
	if w := &e.disk; w.question != 0 && question == w.question {
		w.wrote[from] = true
	}
}

// leaveToWriters gives each election led here to the best candidate that has
// written, if a majority of the voters have.
func (e *Elector) leaveToWriters() {
	w := &e.disk
	if e.cfg.Quorum && !quorum.Confirmed(e.roster, func(id election.PeerID) bool { return w.wrote[id] }) {
		return
	}
	for _, c := range e.contests.rows {
		if c.Role() != contest.Leader {
			continue
		}
		heir := c.BestOf(c, func(id election.PeerID) bool { return w.wrote[id] })
		if heir.Peer != "" {
			e.stepDown(c, election.ReasonDisk, heir.Peer)
		}
	}
}

// reportOnceWritten answers once this agent has written something. A peer that asks
// again gets one answer, to its last question.
func (e *Elector) reportOnceWritten(to election.PeerID, question uint64) {
	e.cancelReport(to)
	e.ledger.WhenDurable(e.ledger.NextWrite(), election.Envelope{To: to,
		Message: election.Report{ID: question, Election: election.RosterElection}})
}

// cancelReport drops the answer that waits for a write.
func (e *Elector) cancelReport(to election.PeerID) {
	e.ledger.Cancel(func(m election.Envelope) bool {
		_, reports := m.Message.(election.Report)
		return reports && m.To == to
	})
}
