package elector

import (
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

// silent reports whether a leader's heartbeats are overdue, or an answer has not come for a lease.
func (e *Elector) silent(id election.PeerID) bool {
	p := e.peers.get(id)
	return p != nil && e.now >= p.silentFrom(e.cfg.Lease)
}

// silentFrom is when the peer becomes silent if nothing more comes.
func (p *peer) silentFrom(lease time.Duration) election.Instant {
	return min(p.beats.Deadline(), p.unansweredSince.Add(lease))
}

func (p *peer) overdue(now election.Instant) bool { return now >= p.beats.Deadline() }

// expectAnswer records that the peer was sent something that it must answer.
func (p *peer) expectAnswer(now election.Instant) { p.unansweredSince = min(p.unansweredSince, now) }

// redialLeader asks for a new connection to a leader whose lease has expired and from which nothing
// came for half a lease. A follower sends no heartbeats, so no missing answer shows that.
func (e *Elector) redialLeader(id election.PeerID) {
	if p := e.peers.get(id); p != nil && e.now > p.heardAt.Add(e.cfg.Lease/2) {
		e.redial(id, p)
	}
}

// redial asks for a new connection, at most once a lease.
func (e *Elector) redial(id election.PeerID, p *peer) {
	if e.now >= p.redialAt {
		p.redialAt = e.now.Add(e.cfg.Lease)
		e.out.Redial = append(e.out.Redial, id)
	}
}

// heardFrom records that a message came. A peer that no longer leads sends no heartbeats, but
// that is not silence.
func (e *Elector) heardFrom(id election.PeerID, m election.Message) {
	p := e.peers.get(id)
	p.heardAt, p.unansweredSince = e.now, election.Never
	_, released := m.(election.Release)
	_, beats := m.(election.Heartbeat)
	if released || !beats && p.overdue(e.now) && !e.follows(id) {
		p.beats = nil
	}
}

func (e *Elector) follows(id election.PeerID) bool {
	for _, c := range e.contests.rows {
		if c.Leader().Holder.Peer == id {
			return true
		}
	}
	return false
}

// maxProbes bounds how often the time between two Inquiries is doubled.
const maxProbes = 3

// probe sends an Inquiry to peers whose Report is missing, and to silent ones: otherwise a
// former leader whose Release was lost would stay silent forever. A peer that does not answer
// is asked less and less often. probe returns when it is due next.
func (e *Elector) probe() election.Instant {
	wake := election.Never
	for i, p := range e.peers.rows {
		if e.now < p.unwritableUntil {
			wake = min(wake, p.unwritableUntil) // its vote may then be had again
		}
		if e.now >= p.probeDue(e.cfg.Lease) {
			p.probeAt = e.now.Add(e.cfg.Heartbeat << p.probes)
			p.probes = min(p.probes+1, maxProbes)
			p.expectAnswer(e.now)
			e.send(e.peers.keys[i], election.Inquiry{})
		}
		wake = min(wake, p.probeDue(e.cfg.Lease))
	}
	return wake
}

func (p *peer) probeDue(lease time.Duration) election.Instant {
	if !p.Reported {
		return p.probeAt
	}
	return max(p.probeAt, p.silentFrom(lease))
}
