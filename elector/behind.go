package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Votes count at one version of the roster only. A voter with an older one adopts the
// present one as soon as it learns of it, unless its disk is full, or all voters that it
// knows were replaced while it was away, and it must not believe the others. Such a voter
// can't vote, however well it is connected, so it must not count as reachable.

// differs reports whether a voter, or an agent to be added, is known to hold a roster with
// which it can't vote.
func (e *Elector) differs(id election.PeerID, p *peer) bool {
	switch {
	case e.roster == nil, p.holds == election.Version{}:
		return false
	case e.roster.Has(id):
		return p.holds.Before(e.roster.Version)
	}
	return e.joins(id) && p.holds != e.roster.Version
}

// joins reports whether the peer is to be added by a change that has not begun.
func (e *Elector) joins(id election.PeerID) bool {
	w := e.change.want
	return w != nil && e.roster.Version == w.of && e.change.driver == nil && !e.roster.Has(id) &&
		slices.ContainsFunc(w.voters, func(v election.Voter) bool { return v.Peer == id })
}

// bringUp sends the present roster to the peers that hold another one, and asks what they
// hold now. It returns when it is to be called next.
func (e *Elector) bringUp() election.Instant {
	wake := election.Never
	if !e.cfg.Quorum {
		return wake
	}
	for i, p := range e.peers.rows {
		id := e.peers.keys[i]
		if !e.differs(id, p) {
			p.differsSince = 0
			continue
		}
		if p.differsSince == 0 {
			p.differsSince, p.bringUpAt = e.now, e.now
			if !e.joins(id) {
				p.bringUpAt = e.now.Add(e.cfg.Timing.Heartbeat) // the present one may be under way
			}
		}
		if e.now >= p.bringUpAt {
			p.bringUpAt = e.now.Add(e.cfg.Timing.Heartbeat)
			if e.roster.Has(e.cfg.Self.Peer) { // observers are not believed
				e.send(id, e.report(0, election.RosterElection))
			}
			e.send(id, election.Inquiry{Election: election.RosterElection})
		}
		wake = min(wake, p.bringUpAt)
		if !e.behind(p) {
			wake = min(wake, p.differsSince.Add(e.cfg.Timing.Lease))
		}
	}
	return wake
}

// behind reports whether the peer has held another roster for a lease, though it got the
// present one.
func (e *Elector) behind(p *peer) bool {
	return p.differsSince != 0 && e.now >= p.differsSince.Add(e.cfg.Timing.Lease)
}

// joinersReady reports whether the agents to be added hold the present roster, or none.
func (e *Elector) joinersReady() bool {
	for i, p := range e.peers.rows {
		if e.joins(e.peers.keys[i]) && (e.differs(e.peers.keys[i], p) || !p.reported && p.holds == election.Version{}) {
			return false
		}
	}
	return true
}

// behindJoiner is the name of an agent to be added that does not adopt the present
// roster; empty if there is none.
func (e *Elector) behindJoiner() string {
	for i, p := range e.peers.rows {
		if e.joins(e.peers.keys[i]) && e.behind(p) {
			return e.nameOf(e.peers.keys[i])
		}
	}
	return ""
}
