package elector

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A newer roster is adopted without a vote (R2). So it must come from a voter that this agent
// knows: a copy of this cluster, changed elsewhere, could otherwise replace its voters.

// doubted is a peer's newest roster that this agent did not adopt.
type doubted struct {
	version election.Version
	voters  string
	why     Doubt
}

// learnRoster adopts a newer roster of a peer, unless there is an objection.
func (e *Elector) learnRoster(from election.PeerID, r *election.Roster) {
	if r == nil || !e.cfg.Quorum {
		return
	}
	p := e.peers.get(from)
	if p != nil {
		p.holds = r.Version
	}
	state := e.ledger.State()
	held := state.Roster
	if held == nil || held.Cluster != r.Cluster || !held.Version.Before(r.Version) {
		e.formation.Learn(e.now, r)
		return
	}
	if why := e.objection(from, held, r); why != 0 {
		e.counters.Dropped["doubted_roster"]++
		if p != nil {
			p.doubted = doubted{version: r.Version, voters: strings.Join(election.Names(r.Voters, nil), ","), why: why}
		}
		return
	}
	if lost(held, r) > 1 {
		e.voter.AdoptKeeping(e.now, r)
		return
	}
	e.formation.Learn(e.now, r)
}

// objection is why a peer's newer roster is not adopted; 0: it is.
func (e *Elector) objection(from election.PeerID, held, r *election.Roster) Doubt {
	switch {
	case r.Version == e.ledger.State().Refused:
		return Refused
	case from != e.cfg.Self.Peer && !held.Has(from):
		return FromUnknown
	case lost(held, r) > 1 && e.stillHeld(held):
		e.askVoters(held)
		return DropsMany
	}
	return 0
}

// lost counts the voters that would no longer decide. One change drops at most one voter:
// if more are lost, this agent missed several changes, or they were made elsewhere.
func lost(held, r *election.Roster) int {
	n := 0
	for _, v := range held.Counted() {
		if !r.Has(v.Peer) {
			n++
		}
	}
	return n
}

// stillHeld reports whether a majority of the former voters (of each half, if the held roster
// is marked) is known to hold no newer roster: then no newer one can be committed.
func (e *Elector) stillHeld(held *election.Roster) bool {
	return quorum.Confirmed(held, func(id election.PeerID) bool {
		p := e.peers.get(id)
		return id == e.cfg.Self.Peer || p != nil && e.reachable(id) && p.holds != (election.Version{}) && !held.Version.Before(p.holds)
	})
}

// askVoters asks the voters what they hold now, at most once a heartbeat.
func (e *Elector) askVoters(held *election.Roster) {
	if e.now < e.askRosterAt {
		return
	}
	e.askRosterAt = e.now.Add(e.cfg.Timing.Heartbeat)
	for _, v := range held.Counted() {
		if v.Peer != e.cfg.Self.Peer && e.isConnected(v.Peer) {
			e.send(v.Peer, election.Inquiry{Election: election.RosterElection})
		}
	}
}

// propose gives a proposal to this agent's voter. The driver must be a voter of the roster
// held here: an agent that missed a change has to learn of that first.
func (e *Elector) propose(from election.PeerID, m election.RosterPropose) {
	held := e.ledger.State().Roster
	if held != nil && from != e.cfg.Self.Peer && held.Cluster == m.Roster.Cluster && held.Version.Before(m.Roster.Version) &&
		!held.Has(from) {
		e.counters.Dropped["doubted_roster"]++
		if p := e.peers.get(from); p != nil {
			p.doubted = doubted{version: m.Roster.Version, voters: strings.Join(election.Names(m.Roster.All(), nil), ","), why: OtherDriver}
		}
		e.askVoters(held)
		e.send(from, election.RosterRefuse{Driver: m.Driver, Version: m.Roster.Version,
			Granted: e.ledger.State().Grant(election.RosterElection).Term, Roster: e.roster})
		return
	}
	e.voter.Propose(e.now, from, m)
}

type wantedRestore struct {
	request    election.RequestID
	generation uint64
	deadline   election.Instant
}

// restore goes back to the roster that was held before one that dropped several voters was
// adopted. The reply follows once the former roster is durable.
func (e *Elector) restore(id election.RequestID) *election.Refusal {
	state := e.ledger.State()
	switch {
	case e.barred.Code != "":
		return e.whyBarred()
	case e.change.restore != nil:
		return &election.Refusal{Why: election.DeniedRestoring}
	case state.Former == nil || state.Roster == nil:
		return &election.Refusal{Why: election.DeniedNothingToGoBack}
	}
	generation, ok := e.voter.Restore()
	if !ok {
		return &election.Refusal{Why: election.DeniedVoteOnItsWay}
	}
	e.change.restore = &wantedRestore{request: id, generation: generation, deadline: e.now.Add(5*e.cfg.Timing.Lease + 5*time.Second)}
	return nil
}

// finishRestore replies once the former roster is durable, or at the deadline.
func (e *Elector) finishRestore() {
	ch := &e.change
	switch r := ch.restore; {
	case r == nil:
		return
	case e.ledger.Durable(r.generation):
		e.reply(r.request, nil)
	case e.now >= r.deadline:
		e.reply(r.request, &election.Refusal{Why: election.DeniedNotRestored})
	default:
		ch.wakeAt = min(ch.wakeAt, r.deadline)
		return
	}
	ch.restore = nil
}

// Votes count at one version of the roster only. A voter with an older version adopts the
// present one as soon as it learns of it, unless its disk is full, or unless it believes
// nobody since all voters that it knows were replaced. It can't vote, so it is not reachable.

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

// joins reports whether the peer is to be added by a change that has not started.
func (e *Elector) joins(id election.PeerID) bool {
	w := e.change.want
	return w != nil && e.roster.Version == w.of && e.change.driver == nil && !e.roster.Has(id) &&
		slices.ContainsFunc(w.voters, func(v election.Voter) bool { return v.Peer == id })
}

// bringUp sends the present roster to the peers that hold another one, and asks what they
// hold now. It returns when it is due next.
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
				p.bringUpAt = e.now.Add(e.cfg.Timing.Heartbeat) // the present roster may be on its way
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

// behind reports whether the peer has not adopted the present roster for a lease.
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

// behindJoiner is the name of an agent to be added that does not adopt the present roster.
func (e *Elector) behindJoiner() string {
	for i, p := range e.peers.rows {
		if e.joins(e.peers.keys[i]) && e.behind(p) {
			return e.nameOf(e.peers.keys[i])
		}
	}
	return ""
}
