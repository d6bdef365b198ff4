package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// bid is this agent's request for a term: a nominee's for the first one, or a
// leader's for one above the term that it leads (R6).
type bid struct {
	lease    *quorum.Lease    // what the votes are worth; its Term is the one asked for
	deadline election.Instant // a nominee gives up then
	resendAt election.Instant
	every    time.Duration // doubled each time: voters that answer late must not be asked more and more often
	refused  map[election.PeerID]refusal
	second   bool // of the same nomination: the first was refused for its term alone
}

// refusal is why a voter refuses a bid, and the highest term that it knows.
type refusal struct {
	why   election.RefusalReason
	known election.Term
}

// newBid starts to ask for a term that was never asked for (H1).
func (e *Elector) newBid(c *contest) *bid {
	return &bid{lease: quorum.NewLease(e.newTerm(c), e.cfg.Timing.Lease, e.cfg.Drift, e.roster),
		refused: map[election.PeerID]refusal{}}
}

// refuse records a voter's answer. A late one does not count against a vote that came
// since, unless the term is too low: that is final.
func (b *bid) refuse(voter election.PeerID, m election.VoteRefusal) {
	if m.Reason != election.RefusedVersion && (m.Reason == election.RefusedStaleTerm || !b.lease.SupportedBy(voter)) {
		b.refused[voter] = refusal{why: m.Reason, known: m.Granted}
	}
}

// tooLow reports whether a voter of the roster refuses the term as too low.
func (b *bid) tooLow(r *election.Roster) bool {
	for id, refused := range b.refused {
		if (refused.why == election.RefusedStaleTerm || refused.why == election.RefusedFloor) && r.Has(id) {
			return true
		}
	}
	return false
}

// nominate begins to ask for the votes of a majority. Without quorum the nominee leads
// at once.
func (e *Elector) nominate(c *contest, f election.Field) {
	if !e.cfg.Quorum {
		t := e.newTerm(c)
		e.remember(c, t)
		e.becomeLeader(c, &tenure{term: t})
		return
	}
	e.counters.Attempts++
	c.bid = e.newBid(c)
	c.bid.deadline = f.Patience
	e.sendAll(c.selection.Nominated(f, e.roster.Has))
	e.pursue(c, f)
}

// pursue follows up a nominee's bid.
func (e *Elector) pursue(c *contest, f election.Field) {
	switch {
	case !f.Able:
		e.failBid(c, f)
		return
	case e.now >= c.bid.deadline:
		c.late = c.bid.lease.Term
		e.failBid(c, f)
		return
	case !e.mayStillGrant(c):
		learnt := e.goBack(c) || e.mayStillGrant(c, election.RefusedStaleTerm, election.RefusedFloor)
		if learnt && !c.bid.second {
			e.abandon(c)
			e.nominate(c, f) // it only had to learn the term: the choice stands
			c.bid.second = true
			return
		}
		e.failBid(c, f) // a split vote
		return
	}
	e.seekVotes(c)
	c.wake(c.bid.deadline)
}

// seekVotes asks the voters, and again while a majority is missing: the lease counts from
// the send, so who waits for an old lease to end wants a fresh one.
func (e *Elector) seekVotes(c *contest) {
	if b := c.bid; e.now >= b.resendAt {
		b.every = min(max(2*b.every, e.cfg.Timing.Heartbeat/2), e.cfg.Timing.Heartbeat*3/4)
		b.resendAt = e.now.Add(b.every)
		e.requestVotes(c, b.lease.Term)
	}
	c.wake(c.bid.resendAt)
}

// mayStillGrant reports whether the reachable voters that have not refused, or only
// for one of those reasons, are a majority.
func (e *Elector) mayStillGrant(c *contest, but ...election.RefusalReason) bool {
	return quorum.Confirmed(e.roster, func(id election.PeerID) bool {
		refused, has := c.bid.refused[id]
		return (!has || slices.Contains(but, refused.why)) && e.reachable(id)
	})
}

// won reports whether a majority's answers leave enough of a lease to lead.
func (e *Elector) won(b *bid) bool {
	return b.lease.End() > e.now.Add(e.guard())
}

func (e *Elector) requestVotes(c *contest, t election.Term) {
	for _, v := range e.roster.All() {
		e.requestVote(c, v.Peer, t)
	}
}

func (e *Elector) requestVote(c *contest, voter election.PeerID, t election.Term) {
	e.send(voter, election.VoteRequest{Election: c.name, Term: t, Holder: e.cfg.Self,
		Lease: e.cfg.Timing.Lease, Send: e.sends.Next(e.now), Rank: e.ownRank(c), Roster: *e.roster})
}

// failBid gives the votes back, waits a random time (Ongaro 2014, section
// 3.4), and after a second failure lets the next rank go.
func (e *Elector) failBid(c *contest, f election.Field) {
	e.abandon(c)
	c.selection.Stop()
	c.notBefore = max(c.notBefore, e.now.Add(e.jitter(e.cfg.Timing.Heartbeat)))
	c.failures++
	if c.failures >= 2 && len(f.Ranks) > 1 {
		c.failures = 0
		c.standDownUntil = e.now.Add(e.cfg.Timing.Lease)
		c.wake(c.standDownUntil)
	}
	c.wake(c.notBefore)
}

func (e *Elector) jitter(d time.Duration) time.Duration {
	return time.Duration(e.rng.Int64N(int64(d) + 1))
}

// guard is how long before its lease ends a leader withdraws, and how much of
// a lease must be left to begin to lead.
func (e *Elector) guard() time.Duration { return e.cfg.Timing.stagger() }

// abandon ends a nominee's bid and gives its votes back. The term was never acted
// under, nor is any other, so this is no early release (H6).
func (e *Elector) abandon(c *contest) {
	if c.role() != nominee {
		return
	}
	e.sendVoters(election.Release{Election: c.name, Term: c.bid.lease.Term, Holder: e.cfg.Self})
	c.bid = nil
}

func (e *Elector) sendVoters(m election.Message) {
	for _, v := range e.roster.All() {
		e.send(v.Peer, m)
	}
}

// voteRequest hands a request to the voter, and takes it as word of a round.
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
		e.heedRound(c, m.Rank)
	}
	e.voter.Request(e.now, from, m)
}

// heedRound stands back for a better-ranked nominee.
func (e *Elector) heedRound(c *contest, asker election.Rank) {
	if c.role() != follower && c.role() != nominee || !asker.Above(e.ownRank(c)) || !c.standing {
		return
	}
	if c.leader.holder != (election.Holder{}) && !e.vacant(c) {
		return
	}
	if c.role() == nominee {
		e.abandon(c)
		c.selection.Stop()
	}
	c.begun = false
	c.selection.StandBack(e.now, e.field(c), asker)
}

// voteGrant counts a vote for what this agent asks for or holds (H4).
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
	if m.Term == c.late {
		e.agenda.narrow(e.now, e.cfg.Timing.voteTimeout())
	}
	switch {
	case c.asksFor(m.Term):
		if fresh {
			c.bid.lease.Count(from, sent, m.Version)
			delete(c.bid.refused, from)
		}
	case c.role() == leader && c.held.term == m.Term:
		if fresh {
			c.held.lease.Count(from, sent, m.Version)
			delete(c.held.disputed, from)
		}
	case c.role() == follower:
		// A vote for a bid given up: the voter need not keep it.
		e.send(from, election.Release{Election: m.Election, Term: m.Term, Holder: e.cfg.Self})
	}
}

// asksFor reports whether the votes of that term are asked for now.
func (c *contest) asksFor(t election.Term) bool { return c.bid != nil && c.bid.lease.Term == t }

// voteRefusal learns from a refusal, and counts it once.
func (e *Elector) voteRefusal(from election.PeerID, m election.VoteRefusal) {
	c := e.held(m.Election)
	if c == nil || m.Holder != e.cfg.Self {
		e.counters.Dropped["stale_refusal"]++
		return
	}
	if !e.votes(from, m.Roster) || !e.learnTerm(c, m.Granted) {
		e.counters.Dropped["stale_refusal"]++
		return
	}
	e.learnRoster(from, m.Roster)
	if p := e.peers.get(from); p != nil && m.Reason == election.RefusedUnavailable {
		p.unwritableUntil = e.now.Add(e.cfg.Timing.Lease)
	}
	if m.Reason == election.RefusedFloor && e.roster != nil {
		c.highest = max(c.highest, e.roster.Floor)
		if r := m.Roster; r != nil && r.Cluster == e.roster.Cluster && r.Version == e.roster.Version {
			e.learnTerm(c, r.Floor) // a voter keeps the floor of a roster it held before (R5)
		}
	}
	if m.Remaining > 0 && m.GrantedTo != e.cfg.Self {
		e.noteRecord(election.Record{Election: m.Election, Term: m.Granted, Holder: m.GrantedTo, Remaining: m.Remaining})
	}
	switch {
	case !e.roster.Has(from):
	case c.asksFor(m.Term):
		c.bid.refuse(from, m)
	case c.role() == leader && c.held.term == m.Term && (m.Reason == election.RefusedStaleTerm || m.Reason == election.RefusedFloor):
		e.dispute(c, from)
	}
}

// rerosterContest goes on with one election under the roster that has just
// become durable: lease already earned stays good, the rest is asked again (R6).
func (e *Elector) rerosterContest(c *contest) {
	if e.roster == nil {
		return
	}
	if c.held != nil && c.held.lease != nil {
		c.held.lease.Reroster(e.roster)
	}
	if c.role() == leader || c.role() == nominee && c.bid.lease.Term <= e.roster.Floor {
		c.highest = max(c.highest, e.roster.Floor)
	}
	if c.role() == nominee && c.bid.lease.Term <= e.roster.Floor {
		e.abandon(c)
		c.selection.Stop()
		return
	}
	if b := c.bid; b != nil {
		b.lease.Reroster(e.roster)
		b.resendAt = e.now
		clear(b.refused)
	}
	if c.role() == leader {
		e.askAgain(c)
	}
}
