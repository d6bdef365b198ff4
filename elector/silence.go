package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
)

func (p *peer) heardHeartbeat(now election.Instant, t election.Timing) {
	if p.beats == nil {
		p.beats = failuredetector.New(t.Heartbeat, t.Lease)
	}
	p.beats.Heard(now)
}

// silent reports whether the peer's heartbeats are overdue, or it has not answered for a lease.
func (e *Elector) silent(id election.PeerID) bool {
	p := e.peers.get(id)
	return p != nil && e.now >= p.silentFrom(e.cfg.Lease)
}

// silentFrom is when the peer becomes silent if nothing more arrives from it.
func (p *peer) silentFrom(lease time.Duration) election.Instant {
	return min(p.beats.Deadline(), p.unansweredSince.Add(lease))
}

func (p *peer) overdue(now election.Instant) bool { return now >= p.beats.Deadline() }

// expectAnswer records that the peer was sent a message that it must answer.
func (p *peer) expectAnswer(now election.Instant) { p.unansweredSince = min(p.unansweredSince, now) }

// redial asks for a new connection, at most once a lease.
func (e *Elector) redial(id election.PeerID, p *peer) {
	if e.now >= p.redialAt {
		p.redialAt = e.now.Add(e.cfg.Lease)
		e.out.Redial = append(e.out.Redial, id)
	}
}

// heardFrom records that a message arrived. If the peer has stopped leading, its missing heartbeats
// are not a sign of silence, so their detector is dropped.
func (e *Elector) heardFrom(id election.PeerID, m election.Message) {
	p := e.peers.get(id)
	e.dues.stir(p)
	p.heardAt, p.unansweredSince = e.now, election.Never
	if _, beats := m.(election.Heartbeat); !beats && p.overdue(e.now) && !e.follows(id) {
		p.beats = nil
	}
}

func (e *Elector) follows(id election.PeerID) bool {
	return slices.ContainsFunc(e.contests.rows, func(c *entry) bool { return c.Leader().Holder.Peer == id })
}

// maxProbes bounds how many times the time between two Inquiries is doubled.
const maxProbes = 3

// lookAt sends an Inquiry to a peer, more and more rarely, if its Report is missing or it is silent: otherwise a
// former leader whose Release was lost would stay silent forever. It returns when to look at the peer again.
func (e *Elector) lookAt(p *peer) election.Instant {
	if e.now >= p.probeDue(e.cfg.Lease) {
		p.probeAt = e.now.Add(e.cfg.Heartbeat << p.probes)
		p.probes = min(p.probes+1, maxProbes)
		p.expectAnswer(e.now)
		e.send(p.id, election.Inquiry{})
	}
	if len(e.warnOfPeer(nil, p.id, p)) > 0 {
		e.noted.put(p.id, p)
	} else {
		e.noted.remove(p.id)
	}
	return p.due(e)
}

func (p *peer) due(e *Elector) election.Instant {
	due := p.probeDue(e.cfg.Lease)
	if e.now < p.unwritableUntil {
		due = min(due, p.unwritableUntil) // then it may be able to write again
	}
	if silent := p.silentFrom(e.cfg.Lease); e.now < silent {
		due = min(due, silent) // then it can't be elected
	}
	if e.stands.lacking(p) {
		due = min(due, p.sendAt)
	}
	return due
}

func (p *peer) probeDue(lease time.Duration) election.Instant {
	if !p.Reported {
		return p.probeAt
	}
	return max(p.probeAt, p.silentFrom(lease))
}
