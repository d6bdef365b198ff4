package elector

import "github.com/doyen-election/doyen/election"

// voteRequest hands a request to the voter, and takes it as news of a round.
func (e *Elector) voteRequest(from election.PeerID, m election.VoteRequest) {
	if m.Holder.Peer != from || m.Rank.Peer != from {
		e.counters.Dropped["malformed"]++
		return
	}
	if from != e.cfg.Self.Peer && m.Holder.Boot != e.peers.get(from).boot {
		e.counters.Dropped["stale_request"]++ // that run is over: a promise to it would only hold off others
		return
	}
	if e.older(from) {
		e.counters.Dropped["older_voter"]++ // among its votes may be its own, which it has given to another
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
	if c == nil || m.Holder != e.cfg.Self {
		e.counters.Dropped["stale_refusal"]++
		return
	}
	if !e.votes(from, m.Roster) || !e.learn(c, m.Granted) {
		e.counters.Dropped["stale_refusal"]++
		return
	}
	e.learnRoster(from, m.Roster)
	if p := e.peers.get(from); p != nil && m.Reason == election.RefusedUnavailable {
		p.unwritableUntil = e.now.Add(e.cfg.Timing.Lease)
	}
	e.carry(c, c.VoteRefused(c, from, m))
}
