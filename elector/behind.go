package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Votes count at one version of the roster only. A voter that holds an older one
// mostly takes over the present one as soon as it hears of it. But one that was away
// while the others it knows were replaced hears of it from strangers alone, which it
// must not believe; and one whose disk is full can't write it. Its vote can't be had,
// however well it is connected, and it must not count as a spare.

// differs reports whether a peer that votes, or is to, is known to hold a roster
// with which it can't.
func (e *Elector) differs(id election.PeerID, p *peer) bool {
	switch {
	case e.roster == nil, e.foreign(p), p.holds == election.Version{}:
		return false
	case e.roster.Has(id):
		return p.holds.Before(e.roster.Version)
	}
	return e.joins(id) && p.holds != e.roster.Version
}

// joins reports whether the peer is to be added by a change that is not begun.
func (e *Elector) joins(id election.PeerID) bool {
	w := e.change.want
	return w != nil && e.roster.Version == w.of && e.change.driver == nil && !e.roster.Has(id) &&
		slices.ContainsFunc(w.voters, func(v election.Voter) bool { return v.Peer == id })
}

// bringUp sends the present roster to those that hold another one, and asks what
// they hold now: what is known of them may be old. It returns when it is to be
// called next.
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
				p.bringUpAt = e.now.Add(e.cfg.Timing.Heartbeat) // the news may be on its way
			}
		}
		if e.now >= p.bringUpAt {
			p.bringUpAt = e.now.Add(e.cfg.Timing.Heartbeat)
			if e.roster.Has(e.cfg.Self.Peer) { // nobody else is believed
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

// behind reports whether the peer has held another roster for a lease, though it was
// told of the present one.
func (e *Elector) behind(p *peer) bool {
	return p.differsSince != 0 && e.now >= p.differsSince.Add(e.cfg.Timing.Lease)
}

// joinersReady reports whether those to be added hold the present roster, or none
// yet.
func (e *Elector) joinersReady() bool {
	for i, p := range e.peers.rows {
		if e.joins(e.peers.keys[i]) && (e.differs(e.peers.keys[i], p) || !p.reported && p.holds == election.Version{}) {
			return false
		}
	}
	return true
}

// behindJoiner is the name of one to be added that does not take over the present
// roster; empty if there is none.
func (e *Elector) behindJoiner() string {
	for i, p := range e.peers.rows {
		if e.joins(e.peers.keys[i]) && e.behind(p) {
			return e.nameOf(e.peers.keys[i])
		}
	}
	return ""
}
