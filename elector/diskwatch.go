package elector

import (
	"cmp"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A leader renews its leases without its disk, so it would go on leading while the disk hangs. But its
// programs may need the disk, and other agents can't get its vote. So a leader writes now and then. If it
// can't, it hands over its elections to an agent that can. It does so only after a majority of the voters
// has written, because all agents may use the same broken storage.

// diskPatience is how long a write may take before the disk counts as stuck, and how often a
// leader writes. It is long, because no agent can be elected while all disks count as stuck.
func (e *Elector) diskPatience() time.Duration {
	return cmp.Or(e.cfg.DiskPatience, max(5*e.cfg.Lease, 5*time.Second))
}

// diskWatch is a leader's question to the other agents: can they write to their disks?
type diskWatch struct {
	question uint64 // the ID of the Inquiry with the question; 0: the leader has not asked
	asked    election.Instant
	askAt    election.Instant // when to send the Inquiry again to agents that have not answered
	wrote    map[election.PeerID]bool
}

// writes reports whether this agent may write promises and, as far as it knows, its disk does not fail.
func (e *Elector) writes() bool {
	return e.barred.Code == "" && !e.ledger.Failing() && !e.diskStuck()
}

func (e *Elector) diskStuck() bool { return e.now >= e.diskStuckFrom() }

// diskStuckFrom is when the disk counts as stuck if the write in progress has not succeeded by then.
func (e *Elector) diskStuckFrom() election.Instant {
	return e.ledger.WaitsSince().Add(e.diskPatience())
}

// watchDisk makes a leader write now and then. If its disk is stuck, it asks the other agents to
// write. It returns when it must be called again.
func (e *Elector) watchDisk() election.Instant {
	leads, w := e.leadsAny(), &e.disk
	if !leads || !e.diskStuck() {
		*w = diskWatch{}
	}
	switch tryAt := e.ledger.TriedAt().Add(e.diskPatience()); {
	case !leads:
		return election.Never
	case e.ledger.Settled() && e.now < tryAt:
		return tryAt
	case e.ledger.Settled():
		e.ledger.Change(func(*election.State) {})
	}
	if !e.diskStuck() {
		return election.Never // wakeAt wakes the agent at diskStuckFrom
	}
	if w.question == 0 || e.now >= w.asked.Add(e.diskPatience()) {
		e.inquired++
		*w = diskWatch{question: e.inquired, asked: e.now, wrote: map[election.PeerID]bool{}}
	}
	if e.now >= w.askAt {
		w.askAt = e.now.Add(e.cfg.Lease)
		for _, id := range e.peers.keys {
			if !w.wrote[id] {
				e.send(id, election.Inquiry{ID: w.question, Durable: true})
			}
		}
	}
	e.leaveToWriters()
	return w.askAt
}

// leaveToWriters hands over each election to the best candidate that has written, after a
// majority of the voters has written.
func (e *Elector) leaveToWriters() {
	w := &e.disk
	if e.cfg.Quorum && !quorum.Confirmed(e.roster, func(id election.PeerID) bool { return w.wrote[id] }) {
		return
	}
	for _, c := range e.contests.rows {
		if c.Role() != contest.Leader {
			continue
		}
		if heir := c.BestOf(c, func(id election.PeerID) bool { return w.wrote[id] }); heir.Peer != "" {
			e.carry(c, c.StepDown(c, election.ReasonDisk, heir.Peer))
		}
	}
}

// reportOnceWritten answers a peer's newest question after this agent's next successful write.
func (e *Elector) reportOnceWritten(to election.PeerID, question uint64) {
	e.cancelReport(to)
	e.ledger.WhenDurable(e.ledger.NextWrite(), election.Envelope{To: to,
		Message: election.Report{ID: question, Election: election.RosterElection}})
}

func (e *Elector) cancelReport(to election.PeerID) {
	e.ledger.Cancel(func(m election.Envelope) bool {
		_, reports := m.Message.(election.Report)
		return reports && m.To == to
	})
}
