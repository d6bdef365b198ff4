package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

func (e *Elector) expireLeases() {
	for _, c := range e.contests.rows {
		if c.Ends(e.now) {
			e.counters.LeasesExpired++
			e.carry(c, c.StepDown(c, election.ReasonLeaseExpired, ""))
		}
	}
}

func (e *Elector) leadsAny() bool {
	return slices.ContainsFunc(e.contests.rows, (*entry).Claimable)
}

// beat sends the heartbeat when it is due: one message to each connected peer, for all elections
// that this agent leads. It returns when the next one is due.
func (e *Elector) beat() election.Instant {
	if !e.leadsAny() {
		clear(e.withheld)
		return election.Never
	}
	if e.now < e.beatAt {
		return e.beatAt
	}
	e.beatAt = e.now.Add(e.cfg.Heartbeat)
	h := e.claims()
	for _, id := range e.peers.keys {
		e.beatTo(id, h)
	}
	if e.roster.Has(e.cfg.Self.Peer) {
		e.renewOwn(h)
	}
	return e.beatAt
}

// beatTo sends a heartbeat to one peer. The heartbeat echoes that peer's last stamp.
func (e *Elector) beatTo(id election.PeerID, h election.Heartbeat) {
	p := e.peers.get(id)
	h.Echo, h.Progress = p.stamp, e.news(p, true)
	if e.now > p.unansweredSince.Add(e.cfg.Lease) {
		e.redial(id, p) // the connection looks open, but no heartbeat has been answered for a lease
	}
	p.expectAnswer(e.now)
	e.dues.stir(p)
	p.stale = p.stamp == 0 || e.now.Sub(p.stampedAt) > e.cfg.Heartbeat*3/2 // a stamp is fresh if it came in answer to the last heartbeat
	e.send(id, h)
}

func (e *Elector) claims() election.Heartbeat {
	h := election.Heartbeat{Lineage: e.cfg.Self.Lineage, Send: e.sends.Next(e.now), Claims: make([]election.Claim, 0, e.ledHere)}
	clear(e.withheld)
	if e.roster != nil {
		h.Version = e.roster.Version
	}
	for _, c := range e.contests.rows {
		if !c.Claimable() {
			continue
		}
		h.Claims = append(h.Claims, c.Claim(e.now, h.Send))
		for voter := range c.Disputed() {
			e.withheld[voter] = true
		}
	}
	e.ledHere = len(h.Claims)
	return h
}

func (e *Elector) renewOwn(h election.Heartbeat) {
	nacks := e.voter.Renew(e.now, e.cfg.Self.Peer, h)
	e.renewed(e.cfg.Self.Peer, election.HeartbeatAck{Lineage: h.Lineage, Send: h.Send, Version: h.Version, Nacks: nacks})
	for _, claim := range h.Claims {
		if c := e.contests.get(claim.Election); c.Refresh(e.now) {
			c.refresh = true
		}
	}
}

func (e *Elector) heartbeatAck(from election.PeerID, m election.HeartbeatAck) {
	if m.Lineage != e.cfg.Self.Lineage {
		e.counters.Dropped["stale_ack"]++
		return
	}
	e.stamped(from, m.Stamp)
	e.noteProgress(m.Progress...)
	if p := e.peers.get(from); p != nil {
		p.Holds = m.Version
	}
	e.learnRoster(from, m.Roster)
	if e.roster != nil && m.Version.Before(e.roster.Version) {
		e.send(from, e.report(0, election.RosterElection)) // the peer has an older roster, so a message with the newer one was lost
	}
	e.renewed(from, m)
	e.passOn()
	if p := e.peers.get(from); p != nil && p.stale && e.leadsAny() {
		e.beatTo(from, e.claims()) // now the peer's stamp is fresh: if it is echoed, the peer can name its leader
		p.stale = false            // at most once in a heartbeat, whatever the peer answers
	}
}

// renewed counts the claims that a voter renews, and passes its nacks to their contests.
func (e *Elector) renewed(voter election.PeerID, m election.HeartbeatAck) {
	sent, fresh := e.sends.At(m.Send)
	if !fresh || !e.roster.Has(voter) || e.older(voter) {
		return
	}
	for _, c := range e.contests.rows {
		i := slices.IndexFunc(m.Nacks, func(n election.Nack) bool { return n.Election == c.Name() })
		if i < 0 {
			if c.Renewed(voter, &m, sent) {
				c.touch()
			}
			continue
		}
		e.carry(c, c.Nacked(c, voter, m.Send, m.Nacks[i]))
	}
}
