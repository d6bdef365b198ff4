package elector

import (
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
	if e.cfg.Quorum && e.heldRoster() != nil && p.roster == nil {
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
	until := e.claimEnd(claim, echo)
	if c := e.contests.get(claim.Election); c != nil && !c.touched {
		if wakeAt, prolonged := c.Prolong(c, holder, claim, until); prolonged {
			c.wakeAt, c.refresh = wakeAt, true
			return
		}
	}
	if c := e.contest(claim.Election); c != nil {
		e.carry(c, c.Claimed(c, holder, claim, echo, until))
	}
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

// released handles a term that its holder has released.
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
	e.carry(c, c.Released(c, m))
}
