package elector

import (
	"maps"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// heartbeat handles a leader's heartbeat: it renews what this voter promised,
// and names the leader as long as its lease is known to run.
func (e *Elector) heartbeat(from election.PeerID, m election.Heartbeat) {
	p := e.peers.get(from)
	if p == nil || m.Boot != p.boot {
		e.counters.Dropped["stale_heartbeat"]++
		return
	}
	if e.cfg.Quorum && e.heldRoster() != nil && p.cluster == "" {
		e.counters.Dropped["unreported"]++ // it overtook the Report that says of which cluster it is
		e.askReport(from, p)
		return
	}
	e.heardHeartbeat(p)
	p.holds = m.Version
	ack := election.HeartbeatAck{Boot: m.Boot, Send: m.Send, Stamp: e.now}
	if e.roster != nil {
		ack.Version = e.roster.Version
		ack.Nacks = e.voter.Renew(e.now, from, m)
		if m.Version.Before(e.roster.Version) {
			ack.Roster = e.roster
		}
	}
	e.send(from, ack)
	holder := election.Holder{Peer: from, Boot: m.Boot}
	for _, claim := range m.Claims {
		e.claimed(holder, claim, m.Echo)
	}
}

// askReport asks a peer for the Report that it sent when it connected, and that
// was lost where there was no room for it: without one it is never followed.
func (e *Elector) askReport(from election.PeerID, p *peer) {
	switch {
	case p.reportAt == 0:
		p.reportAt = e.now.Add(2 * e.cfg.Timing.Heartbeat) // it may be on its way
	case e.now >= p.reportAt:
		p.reportAt = e.now.Add(e.cfg.Timing.Lease)
		e.send(from, election.Inquiry{})
	}
}

// claimed handles one leadership that a heartbeat claims.
func (e *Elector) claimed(holder election.Holder, claim election.Claim, echo election.Instant) {
	c := e.contest(claim.Election)
	if c == nil {
		return
	}
	confirmed := e.confirms(c, holder, claim.Term)
	if !claim.Term.Follows(c.highest) {
		e.counters.Dropped["term_leap"]++
		return
	}
	if confirmed {
		e.learnTerm(c, claim.Term)
	}
	if claim.Term <= c.over || c.gone.outdates(holder, claim.Term, echo) || c.role() == leader && !confirmed {
		return // a late message, or a claim that a voter's refusal would bear out
	}
	k := known{holder: holder, term: claim.Term, rank: claim.Rank, heard: e.now, until: e.claimEnd(claim, echo)}
	switch {
	case c.role() == leader && !e.yields(c, k), claim.Term < c.leader.term:
		return
	case c.role() != leader && claim.Term == c.leader.term && holder != c.leader.holder && c.leader.rank.Above(claim.Rank):
		return // two leaders without quorum: all name the same one while they meet
	case c.role() == leader:
		e.withdraw(c, departure{reason: election.ReasonSuperseded})
		c.rumour = e.heed(c, k)
		return
	case c.role() == draining:
		c.rumour = e.heed(c, k) // and does not start a round against it when that is over
		return
	case k.until <= e.now:
		// It leads, but how long is not known yet: its next heartbeat echoes our stamp.
		c.rumour = e.heed(c, k)
		return
	}
	e.follow(c, k)
}

// heed is the rumour of a leader that was heard but can't be named yet.
func (e *Elector) heed(c *contest, k known) rumour {
	return rumour{holder: k.holder, term: k.term, heedUntil: e.now.Add(2 * e.cfg.Timing.Heartbeat), promiseEnd: c.rumour.promiseEnd}
}

// claimEnd is the latest instant, on this agent's clock, at which the claimed
// lease certainly still runs. The message may have been long on its way; it
// was sent after the instant it echoes, so the lease is counted from there. An
// instant to come is of this host's former boot and says nothing, and from one
// before a suspend nothing can be counted.
func (e *Elector) claimEnd(claim election.Claim, echo election.Instant) election.Instant {
	if !e.cfg.Quorum {
		return e.now.Add(e.cfg.Timing.Lease)
	}
	if echo > e.now || echo < e.resumed {
		return 0
	}
	remaining := min(claim.Remaining, e.cfg.Timing.Lease)
	return echo.Add(quorum.HolderLease(remaining, e.cfg.Drift))
}

// yields reports whether this leader gives way to another that claims to lead.
// With quorum only a higher term can be real; without, the lower of (term,
// rank) steps down.
func (e *Elector) yields(c *contest, other known) bool {
	if e.cfg.Quorum || other.term != c.held.term {
		return other.term > c.held.term
	}
	return other.rank.Above(e.ownRank(c))
}

// released handles a term given back by its holder.
func (e *Elector) released(from election.PeerID, m election.Release) {
	if m.Holder.Peer != from {
		e.counters.Dropped["malformed"]++
		return
	}
	c := e.contest(m.Election)
	if c == nil {
		return // there is no room for its name: nothing of it is on record either
	}
	if e.cfg.Quorum {
		e.voter.Release(e.now, from, m)
	}
	if from == e.cfg.Self.Peer {
		return
	}
	if p := e.peers.get(from); p != nil {
		p.leaving = p.leaving || m.Leaving
	}
	if e.confirms(c, m.Holder, m.Term) && !e.learnTerm(c, m.Term) {
		return
	}
	maps.DeleteFunc(c.standDowns, func(_ election.PeerID, until election.Instant) bool { return until <= e.now })
	if m.StandDown > 0 {
		c.standDowns[from] = e.now.Add(min(m.StandDown, 2*e.cfg.Timing.Lease))
	}
	if c.rumour.holder == m.Holder && c.rumour.term <= m.Term {
		c.rumour = rumour{}
	}
	if c.leader.holder == m.Holder && m.Term < c.leader.term {
		return // a late word about a term that its holder has overtaken
	}
	if c.leader.holder != m.Holder && (c.leader.holder != (election.Holder{}) || m.StandDown == 0 && m.Target == "") {
		return // an attempt given up, or an old term: nobody we follow
	}
	if c.role() != follower && c.role() != nominee {
		return
	}
	switch {
	case c.leader.holder != m.Holder:
	case e.confirms(c, m.Holder, c.leader.term):
		e.outdate(c, c.leader.term)
	default: // it may have made the term up: those of others are not over
		c.gone = gone{holder: m.Holder, term: c.leader.term}
		if e.cfg.Quorum {
			c.gone.at = e.now
		}
	}
	e.forget(c, election.ReasonReleased)
	c.vacantSince = min(c.vacantSince, e.now)
	e.takeTurns(c, m.Target)
}

// takeTurns lets the target of a transfer ask for votes at once, and holds
// everybody else back for one vote timeout.
func (e *Elector) takeTurns(c *contest, target election.PeerID) {
	if target == "" {
		return
	}
	c.offer.made(target)
	if target != e.cfg.Self.Peer {
		c.notBefore = max(c.notBefore, e.now.Add(e.cfg.Timing.voteTimeout()))
		return
	}
	c.notBefore, c.standDownUntil = 0, 0
	if f := e.field(c); f.Able && c.role() == follower {
		c.selection.Stop()
		e.nominate(c, f)
	}
}
