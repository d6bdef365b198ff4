package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// attempt is a nominee's way to a majority.
type attempt struct {
	deadline election.Instant // give up then
	resendAt election.Instant
	every    time.Duration // doubled each time: what answers late must not be asked for more and more
	refused  map[election.PeerID]election.RefusalReason
	second   bool                              // of the same choice: the first was refused for its term alone
	tooFar   map[election.PeerID]election.Term // voters for which the term is too far above those known, and the highest that each knows
}

// nominate begins an attempt: it asks all voters for a term nobody has had
// (H1). Without quorum the nominee leads at once.
func (e *Elector) nominate(c *contest, f election.Field) {
	c.term = e.newTerm(c)
	if !e.cfg.Quorum {
		e.remember(c)
		e.becomeLeader(c)
		return
	}
	e.counters.Attempts++
	c.role = nominee
	c.lease = quorum.NewLease(c.term, e.cfg.Timing.Lease, e.cfg.Drift, e.roster)
	c.attempt = attempt{deadline: f.Patience, refused: map[election.PeerID]election.RefusalReason{}}
	if b, ok := c.selection.(interface {
		Nomination(election.Field, func(election.PeerID) bool) []election.Envelope
	}); ok {
		e.sendAll(b.Nomination(f, e.roster.Has)) // voters learn of the round by the Vote Request
	}
	e.pursue(c, f)
}

// pursue asks again while a majority is missing: the lease counts from the
// send, so a nominee that waits for an old lease to end wants a fresh one.
func (e *Elector) pursue(c *contest, f election.Field) {
	switch {
	case !f.Able:
		e.failAttempt(c, f)
		return
	case e.now >= c.attempt.deadline:
		c.late = c.term
		e.failAttempt(c, f)
		return
	case !e.mayStillGrant(c):
		learnt := e.goBack(c) || e.mayStillGrant(c, election.RefusedStaleTerm, election.RefusedFloor)
		if learnt && !c.attempt.second {
			e.abandon(c)
			e.nominate(c, f) // it only had to learn the term: the choice stands
			c.attempt.second = true
			return
		}
		e.failAttempt(c, f) // a split vote
		return
	}
	if e.now >= c.attempt.resendAt {
		c.attempt.every = min(max(2*c.attempt.every, e.cfg.Timing.Heartbeat/2), e.cfg.Timing.Heartbeat*3/4)
		c.attempt.resendAt = e.now.Add(c.attempt.every)
		e.requestVotes(c, c.term)
	}
	e.wake(c, election.Earliest(c.attempt.resendAt, c.attempt.deadline))
}

// mayStillGrant reports whether the reachable voters that have not refused, or only
// for one of those reasons, are a majority.
func (e *Elector) mayStillGrant(c *contest, but ...election.RefusalReason) bool {
	return quorum.Confirmed(e.roster, func(id election.PeerID) bool {
		why := c.attempt.refused[id]
		return (why == 0 || slices.Contains(but, why)) && e.reachable(id)
	})
}

// won reports whether a majority's answers leave enough of a lease to lead.
func (e *Elector) won(c *contest) bool {
	return c.lease.End() > e.now.Add(e.guard())
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

// failAttempt gives the votes back, waits a random time (Ongaro 2014, section
// 3.4), and after a second failure lets the next rank go.
func (e *Elector) failAttempt(c *contest, f election.Field) {
	e.abandon(c)
	c.selection.Stop()
	c.retryAt = e.now.Add(e.jitter(e.cfg.Timing.Heartbeat))
	c.failures++
	if c.failures >= 2 && len(f.Ranks) > 1 {
		c.failures = 0
		c.standDownUntil = e.now.Add(e.cfg.Timing.Lease)
		e.wake(c, c.standDownUntil)
	}
	e.wake(c, c.retryAt)
}

func (e *Elector) jitter(d time.Duration) time.Duration {
	return time.Duration(e.rng.Int64N(int64(d) + 1))
}

// guard is how long before its lease ends a leader withdraws, and how much of
// a lease must be left to begin to lead.
func (e *Elector) guard() time.Duration { return e.cfg.Timing.stagger() }

// abandon ends an attempt and gives its votes back. The term was never acted
// under, nor is any other, so this is no early release (H6).
func (e *Elector) abandon(c *contest) {
	if c.role != nominee {
		return
	}
	c.role = follower
	c.lease = nil
	e.sendVoters(election.Release{Election: c.name, Term: c.term, Holder: e.cfg.Self})
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
	if c.role != follower && c.role != nominee || !asker.Above(e.ownRank(c)) || !c.standing {
		return
	}
	if c.leader.holder != (election.Holder{}) && !e.vacant(c) {
		return
	}
	if c.role == nominee {
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
	case c.overtake != nil && c.overtake.Term == m.Term && fresh:
		c.overtake.Count(from, sent, m.Version)
	case (c.role == nominee || c.role == leader) && c.term == m.Term:
		if fresh {
			c.lease.Count(from, sent, m.Version)
			delete(c.attempt.refused, from)
			delete(c.disputed, from)
		}
	case c.role == follower:
		// A vote for an attempt given up: the voter need not keep it.
		e.send(from, election.Release{Election: m.Election, Term: m.Term, Holder: e.cfg.Self})
	}
}

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
		e.noteStanding(election.Standing{Election: m.Election, Term: m.Granted, Holder: m.GrantedTo, Remaining: m.Remaining})
	}
	if m.Reason == election.RefusedStaleTerm || m.Reason == election.RefusedFloor {
		switch {
		case c.role == leader && m.Term == c.term:
			e.dispute(c, from)
		case c.overtake != nil && m.Term == c.overtake.Term && e.roster.Has(from):
			c.overtaken = true
		}
	}
	if m.Reason == election.RefusedLeap && e.roster.Has(from) {
		c.refusedAsTooFar(from, m)
	}
	if c.role == nominee && m.Term == c.term && !c.lease.SupportedBy(from) && m.Reason != election.RefusedVersion {
		c.attempt.refused[from] = m.Reason
	}
}

// refusedAsTooFar takes note of a voter that knows of no term near the one that is
// asked for now.
func (c *contest) refusedAsTooFar(from election.PeerID, m election.VoteRefusal) {
	if overtakes := c.overtake != nil && m.Term == c.overtake.Term; !overtakes && (c.role != nominee || m.Term != c.term) {
		return
	}
	if c.attempt.tooFar == nil {
		c.attempt.tooFar = map[election.PeerID]election.Term{}
	}
	c.attempt.tooFar[from] = m.Granted
}

// rerosterContest goes on with one election under the roster that has just
// become durable: lease already earned stays good, the rest is asked again (R6).
func (e *Elector) rerosterContest(c *contest) {
	if c.lease != nil && e.roster != nil {
		c.lease.Reroster(e.roster)
	}
	if c.overtake != nil && e.roster != nil {
		c.overtake.Reroster(e.roster)
		c.attempt.resendAt = e.now
	}
	if e.roster == nil {
		return
	}
	c.attempt.tooFar = nil
	switch c.role {
	case nominee:
		if c.term <= e.roster.Floor {
			e.abandon(c)
			c.highest = max(c.highest, e.roster.Floor)
			c.selection.Stop()
			return
		}
		c.attempt.refused = map[election.PeerID]election.RefusalReason{}
		c.attempt.resendAt = e.now
	case leader:
		c.highest = max(c.highest, e.roster.Floor)
		e.askAgain(c)
	}
}
