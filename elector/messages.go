package elector

import (
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// heartbeat handles a leader's heartbeat: the voter of this agent renews its promises, the agent
// answers, and each claim goes to its contest.
func (e *Elector) heartbeat(from election.PeerID, m election.Heartbeat) {
	p := e.peers.get(from)
	if p == nil || m.Lineage != p.lineage {
		e.counters.Dropped["stale_heartbeat"]++
		return
	}
	if e.cfg.Quorum && e.heldRoster() != nil && p.roster == nil {
		p.early = new(m) // the heartbeat overtook the Report, which names the sender's cluster
		e.askReport(from, p)
		return
	}
	p.heardHeartbeat(e.now, e.cfg.Timing)
	p.Holds = m.Version
	ack := election.HeartbeatAck{Lineage: m.Lineage, Send: m.Send, Stamp: e.now, Progress: e.news(p, false)}
	e.noteProgress(m.Progress...)
	if e.roster != nil {
		ack.Version = e.roster.Version
		ack.Nacks = e.voter.Renew(e.now, from, m)
		if m.Version.Before(e.roster.Version) {
			ack.Roster = e.roster
		}
	}
	e.send(from, ack)
	holder := election.Holder{Peer: from, Lineage: m.Lineage}
	for _, claim := range m.Claims {
		e.claimed(claim.Election, contest.Known{Holder: holder, Term: claim.Term, Rank: claim.Rank, Heard: e.now, Until: e.claimEnd(claim.Remaining, m.Echo)}, m.Echo)
	}
}

// askReport asks again for a peer's first Report. Until it arrives, this agent does not follow the peer.
func (e *Elector) askReport(from election.PeerID, p *peer) {
	switch {
	case p.reportAt == 0:
		p.reportAt = e.now.Add(2 * e.cfg.Heartbeat) // the first Report may still be on its way
	case e.now >= p.reportAt:
		p.reportAt = e.now.Add(e.cfg.Lease)
		e.send(from, election.Inquiry{})
	}
}

// claimed passes a claim to its election. The parameters are those of Contest.Claimed.
func (e *Elector) claimed(name election.Name, k contest.Known, sent election.Instant) {
	if c := e.contests.get(name); c != nil && !c.touched {
		if wakeAt, prolonged := c.Prolong(c, k); prolonged {
			c.wakeAt, c.refresh = wakeAt, true
			return
		}
	}
	if c := e.contest(name); c != nil {
		e.carry(c, c.Claimed(c, k, sent))
	}
}

// claimEnd is until when the claimed lease certainly runs, on this agent's clock. The heartbeat
// may have been on its way for long, but it was sent after the instant that it echoes: the lease
// counts from that instant. An echo in the future is from a former boot of this host, and one
// from before a suspend can't be compared with the clock now: both give 0.
func (e *Elector) claimEnd(remaining time.Duration, echo election.Instant) election.Instant {
	if !e.cfg.Quorum {
		return e.now.Add(e.cfg.Lease)
	}
	if echo > e.now || echo < e.resumed {
		return 0
	}
	return echo.Add(quorum.HolderLease(min(remaining, e.cfg.Lease), e.cfg.Drift))
}

func (e *Elector) released(from election.PeerID, m election.Release) {
	if m.Holder.Peer != from {
		e.counters.Dropped["invalid"]++
		return
	}
	c := e.contest(m.Election)
	if c == nil {
		return // there is no room for the election, so nothing of it is on record either
	}
	if e.cfg.Quorum {
		e.voter.Release(e.now, from, m)
	}
	if from == e.cfg.Self.Peer {
		return
	}
	p := e.peers.get(from)
	p.leaving = p.leaving || m.Leaving
	e.carry(c, c.Released(c, m))
	if !e.follows(from) {
		p.beats = nil
	}
}

// voteRequest passes a request to the voter, and shows the contest that another agent's round is in progress.
func (e *Elector) voteRequest(from election.PeerID, m election.VoteRequest) {
	if m.Holder.Peer != from || m.Rank.Peer != from {
		e.counters.Dropped["invalid"]++
		return
	}
	if from != e.cfg.Self.Peer && m.Holder.Lineage != e.peers.get(from).lineage {
		e.counters.Dropped["stale_request"]++ // that lineage has ended, so a promise to it would only delay others
		return
	}
	if e.older(from) {
		e.counters.Dropped["older_voter"]++ // it may count its own vote, which it may have given to another holder before
		return
	}
	c := e.contest(m.Election)
	if c == nil {
		return
	}
	e.learnRoster(from, &m.Roster)
	if from != e.cfg.Self.Peer && m.Election != election.RosterElection {
		e.carry(c, c.HeedRound(c, m.Rank))
	}
	e.voter.Request(e.now, from, m)
}

func (e *Elector) voteGrant(from election.PeerID, m election.VoteGrant) {
	c := e.held(m.Election)
	sent, fresh := e.sends.At(m.Send)
	if c == nil || m.Holder != e.cfg.Self {
		e.counters.Dropped["stale_grant"]++
		return
	}
	e.stamped(from, m.Stamp)
	if e.older(from) {
		e.counters.Dropped["older_voter"]++
		return
	}
	e.carry(c, c.VoteGranted(c, from, m, sent, fresh))
}

func (e *Elector) voteRefusal(from election.PeerID, m election.VoteRefusal) {
	c := e.held(m.Election)
	if c == nil || m.Holder != e.cfg.Self || !e.votes(from, m.Roster) || !c.Learn(m.Granted) {
		e.counters.Dropped["stale_refusal"]++
		return
	}
	e.learnRoster(from, m.Roster)
	if p := e.peers.get(from); p != nil && m.Reason == election.RefusedUnavailable {
		p.unwritableUntil = e.now.Add(e.cfg.Lease)
	}
	e.carry(c, c.VoteRefused(c, from, m))
}

func (e *Elector) selectionMessage(from election.PeerID, m election.Selection) {
	if name, algorithm := m.Selects(); algorithm != e.cfg.Algorithm {
		e.counters.Dropped["other_algorithm"]++
	} else if c := e.contest(name); c != nil {
		e.carry(c, c.Receive(c, from, m))
	}
}
