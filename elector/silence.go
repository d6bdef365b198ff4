package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
)

// newDetector watches one leader's heartbeats.
func (e *Elector) newDetector() *failuredetector.Detector {
	d, err := failuredetector.New(e.cfg.detector())
	if err != nil {
		return nil // Validate states the same inequalities
	}
	return d
}

// detector is the failure detector's policy: phi-accrual, or a fixed deadline
// if one is given.
func (c Config) detector() failuredetector.Config {
	d := failuredetector.Config{Heartbeat: c.Timing.Heartbeat, Lease: c.Timing.Lease}
	if c.FixedDeadline > 0 {
		d.Policy, d.Deadline = failuredetector.FixedDeadline, c.FixedDeadline
	}
	return d
}

// heard feeds the failure detector with a leader's heartbeat.
func (e *Elector) heard(p *peer) {
	if p.beats == nil {
		p.beats = e.newDetector()
	}
	p.beats.Heard(e.now)
}

// silent reports whether a peer whose heartbeats came is overdue.
func (e *Elector) silent(id election.PeerID) bool {
	p := e.peers.get(id)
	return p != nil && p.beats != nil && p.beats.Suspects(e.now)
}

// spoke takes note of a word that is no heartbeat. A leader that released, or
// that nobody here follows any more, owes no heartbeats: it is there, it only
// leads no more.
func (e *Elector) spoke(id election.PeerID, m election.Message) {
	_, released := m.(election.Release)
	_, beats := m.(election.Heartbeat)
	if released || !beats && e.silent(id) && !e.follows(id) {
		e.peers.get(id).beats = nil
	}
}

// follows reports whether the peer is known to lead something.
func (e *Elector) follows(id election.PeerID) bool {
	for _, c := range e.contests.rows {
		if c.leader.holder.Peer == id {
			return true
		}
	}
	return false
}

// probe asks for a word from peers that owe one: those that never told what
// they have on record, and silent ones, since one that leads no more, and whose
// Release was lost, would count as silent for ever.
func (e *Elector) probe() {
	for i, p := range e.peers.rows {
		id := e.peers.keys[i]
		if !p.foreign && e.now >= p.probeAt && (!p.reported || e.silent(id)) {
			p.probeAt = e.now.Add(e.cfg.Timing.Heartbeat)
			e.send(id, election.Inquiry{})
		}
	}
}

func (e *Elector) probeWake() election.Instant {
	wake := election.Never
	for _, p := range e.peers.rows {
		switch {
		case p.foreign:
		case !p.reported:
			wake = min(wake, p.probeAt)
		case p.beats != nil:
			wake = min(wake, max(p.beats.Deadline(), p.probeAt))
		}
	}
	return wake
}
