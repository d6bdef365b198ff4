package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// becomeLeader begins to lead: a majority's answers are in (H5), or there is
// no quorum to ask.
func (e *Elector) becomeLeader(c *contest, won *tenure) {
	e.agenda.widen()
	c.held, c.bid = won, nil
	c.failures = 0
	e.settled = true
	c.vacantSince, c.notBefore = election.Never, 0
	c.rumour = rumour{}
	e.outdate(c, won.term-1)
	c.rival = rival{}
	c.offer.taken(e.cfg.Self.Peer)
	c.leader = known{holder: e.cfg.Self, term: won.term, rank: e.ownRank(c), until: e.leaseEnd(c), heard: e.now}
	e.counters.TermsWon++
	e.sendAll(c.selection.Confirmed(e.field(c), election.Leadership{Leader: e.cfg.Self, Term: won.term}))
	c.selection.Stop()
	e.announce(c, election.Announcement{Event: election.Leading, Leader: e.cfg.Self, Term: won.term, Reason: election.ReasonElected})
	e.beatAt = e.now // tell and renew at once
	if c.name == election.RosterElection {
		e.change.wakeAt = e.now // there is a roster to propose
	}
	e.lead(c)
}

// leaseEnd is until when this agent may act as the leader.
func (e *Elector) leaseEnd(c *contest) election.Instant {
	if c.held.lease == nil {
		return e.now.Add(e.cfg.Timing.Lease)
	}
	return c.held.lease.End()
}

// lead keeps a leadership: it takes over what the voters renewed, overtakes
// its own term when that can't be renewed any more, and gives way to a higher
// priority.
func (e *Elector) lead(c *contest) {
	e.overtakeTerm(c)
	e.refreshOwn(c)
	if c.held.lease != nil {
		c.wake(e.actsUntil(c))
	} else {
		c.wake(e.now.Add(e.cfg.Timing.Heartbeat)) // what it says of itself is prolonged then
	}
	e.giveWay(c)
}

// refreshOwn brings what this agent says of its own leadership up to date.
func (e *Elector) refreshOwn(c *contest) {
	before := c.leader
	c.leader.until, c.leader.heard, c.leader.rank = e.leaseEnd(c), e.now, e.ownRank(c)
	if c.held.lease != nil {
		c.leader.heard = c.held.lease.End().Add(-quorum.HolderLease(e.cfg.Timing.Lease, e.cfg.Drift))
	}
	if c.leader != before {
		c.refresh = true
	}
}

// overtakeTerm takes a higher term from the same voters when this one can't be
// renewed any more: same leader, higher token, no gap (R6).
func (e *Elector) overtakeTerm(c *contest) {
	if c.held.lease == nil || e.roster == nil || !e.outlived(c) {
		return
	}
	floor := e.roster.Floor
	if c.held.term <= floor && e.goBack(c) || c.bid == nil || c.bid.lease.Term <= floor || c.bid.tooLow(e.roster) {
		c.bid = e.newBid(c)
	}
	if e.won(c.bid) && c.bid.lease.End() >= c.held.lease.End() { // programs were told of the later one
		c.held, c.bid = &tenure{term: c.bid.lease.Term, lease: c.bid.lease}, nil
		c.leader.term, c.leader.until = c.held.term, c.held.lease.End()
		e.announce(c, election.Announcement{Event: election.NewTerm, Leader: e.cfg.Self, Term: c.held.term, Reason: election.ReasonElected})
		e.beatAt = e.now
		return
	}
	e.seekVotes(c)
}

// askAgain asks the voters for the term this agent leads, under a new roster.
func (e *Elector) askAgain(c *contest) {
	if c.held.term <= e.roster.Floor {
		return // lead overtakes the term instead
	}
	e.requestVotes(c, c.held.term)
}

// expireLeases withdraws what this agent leads before its lease ends (H5).
func (e *Elector) expireLeases() {
	for _, c := range e.contests.rows {
		if c.role() == leader && c.held.lease != nil && e.now >= e.actsUntil(c) {
			e.counters.LeasesExpired++
			e.withdraw(c, departure{reason: election.ReasonLeaseExpired})
		}
	}
}

// actsUntil is when a leadership that is not renewed is withdrawn.
func (e *Elector) actsUntil(c *contest) election.Instant { return c.held.lease.End().Add(-e.guard()) }

// leadsAny reports whether there is a term to claim in heartbeats.
func (e *Elector) leadsAny() bool {
	for _, c := range e.contests.rows {
		if c.claimable() {
			return true
		}
	}
	return false
}

// claimable reports whether heartbeats claim the term: while this agent leads,
// and while it hands over, so that nobody starts a round before the release.
func (c *contest) claimable() bool {
	return c.role() == leader || c.role() == draining && c.held.leaving.orderly()
}

// beat sends the heartbeat when it is due, and returns when the next one is: one
// message to each connected peer for all elections led here.
func (e *Elector) beat() election.Instant {
	if !e.leadsAny() {
		e.withheld = nil
		return election.Never
	}
	if e.now < e.beatAt {
		return e.beatAt
	}
	e.beatAt = e.now.Add(e.cfg.Timing.Heartbeat)
	h := e.claims()
	for _, id := range e.connectedPeers() {
		e.beatTo(id, h)
	}
	if e.roster.Has(e.cfg.Self.Peer) {
		e.renewOwn(h)
	}
	return e.beatAt
}

// beatTo sends a heartbeat to one peer, with the stamp that it may echo.
func (e *Elector) beatTo(id election.PeerID, h election.Heartbeat) {
	p := e.peers.get(id)
	h.Echo = p.stamp
	e.redialUnanswered(id, p)
	e.expectAnswer(p)
	p.stale = p.stamp == 0 || e.now.Sub(p.stampedAt) > e.cfg.Timing.Heartbeat*3/2 // an answer to the last heartbeat is fresh
	e.send(id, h)
}

// claims returns a heartbeat for everything led here.
func (e *Elector) claims() election.Heartbeat {
	h := election.Heartbeat{Boot: e.cfg.Self.Boot, Send: e.sends.Next(e.now), Claims: make([]election.Claim, 0, e.ledHere)}
	clear(e.withheld)
	if e.roster != nil {
		h.Version = e.roster.Version
	}
	for _, c := range e.contests.rows {
		if !c.claimable() {
			continue
		}
		if c.held.firstBeat == 0 {
			c.held.firstBeat = h.Send
		}
		claim := election.Claim{Election: c.name, Term: c.held.term, Remaining: max(0, e.claimedUntil(c).Sub(e.now))}
		if !e.cfg.Quorum {
			claim.Rank = e.ownRank(c)
		}
		h.Claims = append(h.Claims, claim)
		for voter := range c.held.disputed {
			e.withhold(voter)
		}
	}
	e.ledHere = len(h.Claims)
	return h
}

func (e *Elector) claimedUntil(c *contest) election.Instant {
	if c.role() == draining {
		return c.held.leaving.stopBy
	}
	return e.leaseEnd(c)
}

// renewOwn renews with this agent's own voter.
func (e *Elector) renewOwn(h election.Heartbeat) {
	nacks := e.voter.Renew(e.now, e.cfg.Self.Peer, h)
	e.renewed(e.cfg.Self.Peer, election.HeartbeatAck{Boot: h.Boot, Send: h.Send, Version: h.Version, Nacks: nacks})
	for _, claim := range h.Claims {
		if c := e.contests.get(claim.Election); c.role() == leader {
			e.refreshOwn(c)
		}
	}
}

// heartbeatAck counts a peer's renewals.
func (e *Elector) heartbeatAck(from election.PeerID, m election.HeartbeatAck) {
	if m.Boot != e.cfg.Self.Boot {
		e.counters.Dropped["stale_ack"]++
		return
	}
	e.stamped(from, m.Stamp)
	if p := e.peers.get(from); p != nil {
		p.holds = m.Version
	}
	e.learnRoster(from, m.Roster)
	if e.roster != nil && m.Version.Before(e.roster.Version) {
		e.send(from, e.report(0, election.RosterElection)) // the news of the newer roster was lost on its way
	}
	e.renewed(from, m)
	if p := e.peers.get(from); p != nil && p.stale && e.leadsAny() {
		e.beatTo(from, e.claims()) // its stamp is fresh now: it can name its leader
		p.stale = false            // once a heartbeat, whatever it answers
	}
}

// renewed counts the claims a voter honours, and asks it for its vote where it
// has none of ours on record.
func (e *Elector) renewed(voter election.PeerID, m election.HeartbeatAck) {
	sent, fresh := e.sends.At(m.Send)
	if !fresh || !e.roster.Has(voter) || e.older(voter) {
		return
	}
	for _, c := range e.contests.rows {
		if c.role() != leader || c.held.lease == nil || c.held.firstBeat == 0 || m.Send < c.held.firstBeat {
			continue
		}
		i := slices.IndexFunc(m.Nacks, func(n election.Nack) bool { return n.Election == c.name })
		if i < 0 {
			before := c.held.lease.End()
			c.held.lease.Count(voter, sent, m.Version)
			delete(c.held.disputed, voter)
			if c.held.lease.End() > before { // those who answer after the majority change nothing
				c.touch()
			}
			continue
		}
		if e.learnTerm(c, m.Nacks[i].Term) && m.Nacks[i].Term > c.held.term {
			e.dispute(c, voter)
			c.touch()
		}
		if m.Nacks[i].Term <= c.held.term && c.held.term > e.roster.Floor {
			e.requestVote(c, voter, c.held.term)
		}
	}
}

// rival is a candidate of strictly higher priority that a leader sees.
type rival struct {
	peer  election.PeerID
	since election.Instant
}

// offer is to whom the election was transferred, and how often it did not take
// it: one that can't lead, and can't say so, must not cost a gap every preempt
// delay.
type offer struct {
	peer  election.PeerID
	times int
}

// maxPatience bounds how often the preempt delay is doubled.
const maxPatience = 8

func (o *offer) made(to election.PeerID) {
	if o.peer != to {
		*o = offer{peer: to}
	}
	o.times = min(o.times+1, maxPatience)
}

func (o *offer) taken(by election.PeerID) {
	if o.peer == by {
		*o = offer{}
	}
}

// vain is how often the peer did not take what it was offered.
func (o *offer) vain(p election.PeerID) int {
	if o.peer != p {
		return 0
	}
	return o.times
}

// giveWay transfers to a strictly higher priority that stayed for the preempt
// delay. It is the leader's own act: nobody is deposed from outside.
func (e *Elector) giveWay(c *contest) {
	if !e.cfg.Preempt {
		return
	}
	c.listing.renew(e, c, e.advanced)
	best := c.listing.other
	if best.Priority <= c.priority {
		c.rival = rival{}
		return
	}
	if c.rival.peer != best.Peer {
		c.rival = rival{peer: best.Peer, since: e.now}
	}
	due := c.rival.since.Add(e.cfg.PreemptDelay << c.offer.vain(best.Peer))
	if e.now >= due && !e.sharesRoster(best.Peer) {
		due = e.now.Add(e.cfg.Timing.Heartbeat) // its next answer tells
	}
	if e.now < due {
		c.wake(due)
		return
	}
	e.withdraw(c, departure{reason: election.ReasonPreempted, standDown: e.transferStandDown()})
}

// sharesRoster reports whether the peer holds the roster that this agent leads
// by. One that holds another, and can't be brought to take this one over, gets no
// votes of those who hold this one.
func (e *Elector) sharesRoster(id election.PeerID) bool {
	p := e.peers.get(id)
	return !e.cfg.Quorum || e.roster == nil || p != nil && p.holds == e.roster.Version
}

// bestOther returns the best candidate that is not this agent, zero if none.
func (e *Elector) bestOther(c *contest) election.Rank {
	return e.bestOf(c, e.candidate)
}

// heir returns who should follow this agent: nobody in particular if there are
// candidates that will see to it themselves, else the best of those that have
// just stepped down, and would wait, unless they are asked.
func (e *Elector) heir(c *contest) (target election.PeerID, exists bool) {
	if e.bestOther(c).Peer != "" {
		return "", true
	}
	target = e.bestOf(c, e.present).Peer
	return target, target != ""
}

func (e *Elector) bestOf(c *contest, eligible func(*contest, election.Member) (election.Rank, bool)) election.Rank {
	var best election.Rank
	for _, m := range e.view.Members {
		if r, ok := eligible(c, m); ok && (best.Peer == "" || r.Above(best)) {
			best = r
		}
	}
	return best
}

// transferStandDown is how long the leader that transfers leaves the field to
// its target.
func (e *Elector) transferStandDown() time.Duration { return 2 * e.cfg.Timing.voteTimeout() }
