package contest

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// bid is this agent's request for a term. Either a nominee makes it, or a leader that needs a
// higher term than the one it leads (R6).
type bid struct {
	lease    *quorum.Lease    // the lease that the votes so far give; its Term is the term asked for
	deadline election.Instant // when a nominee gives up
	resendAt election.Instant
	every    time.Duration // between two requests; it grows, so that slow voters are not overloaded
	refused  map[election.PeerID]election.VoteRefusal
	word     *wording
	rewrites bool // it has the votes, and writes the word again
	second   bool // this is the nomination's second bid: its first one failed only because of its term
}

func (c *Contest) newBid(s *step) *bid {
	t := c.newTerm(s)
	return &bid{lease: quorum.NewLease(t, c.cfg.Lease, c.cfg.Drift, s.roster),
		refused: map[election.PeerID]election.VoteRefusal{}, word: c.newWording(t, s.roster)}
}

// refuse records a refusal. It ignores a refusal because of the roster's version, since a newer roster is adopted,
// and a late refusal of a voter that has granted the term. But a stale term is final, so it is always recorded.
func (b *bid) refuse(voter election.PeerID, m election.VoteRefusal) {
	if m.Reason != election.RefusedVersion && (m.Reason == election.RefusedStaleTerm || !b.lease.SupportedBy(voter)) {
		b.refused[voter] = m
	}
}

// answered reports whether any voter other than this agent has answered.
func (b *bid) answered(self election.PeerID, r *election.Roster) bool {
	return slices.ContainsFunc(r.All(), func(v election.Voter) bool {
		_, refused := b.refused[v.Peer]
		return v.Peer != self && (refused || b.lease.SupportedBy(v.Peer))
	})
}

func (b *bid) tooLow(r *election.Roster) bool {
	return slices.ContainsFunc(r.All(), func(v election.Voter) bool { return lowTerm(b.refused[v.Peer]) })
}

func lowTerm(m election.VoteRefusal) bool {
	return m.Reason == election.RefusedStaleTerm || m.Reason == election.RefusedFloor
}

// nominate starts a bid. Without quorum the nominee leads at once.
func (c *Contest) nominate(s *step, f election.Field) {
	if !c.cfg.Quorum {
		s.out.Remember = c.newTerm(s)
		c.becomeLeader(s, &tenure{term: s.out.Remember})
		return
	}
	c.counts.Attempts++
	c.bid = c.newBid(s)
	c.bid.deadline = f.Patience
	s.sendAll(c.selection.Nominated(f, s.roster.Has))
	c.pursue(s, f)
}

// pursue continues a nominee's bid.
func (c *Contest) pursue(s *step, f election.Field) {
	switch {
	case !f.Able:
		c.failBid(s, f)
	case s.now >= c.bid.deadline:
		c.late, s.out.Late = c.bid.lease.Term, !c.bid.answered(c.cfg.Self.Peer, s.roster)
		c.failBid(s, f)
	case c.mayStillGrant(s):
		c.seekVotes(s)
		s.wake(c.bid.deadline)
	case (c.goBack(s) || c.mayStillGrant(s, election.RefusedStaleTerm, election.RefusedFloor)) && !c.bid.second:
		c.abandon(s)
		c.nominate(s, f) // only the term was wrong: this agent is still the selected candidate
		c.bid.second = true
	default:
		c.failBid(s, f) // a split vote
	}
}

// seekVotes asks the voters, and repeats the request while a majority is missing. Repeats help:
// the lease counts from the newest send, and voters may have to wait for an old lease to end.
func (c *Contest) seekVotes(s *step) {
	if b := c.bid; s.now >= b.resendAt {
		b.every = min(max(2*b.every, c.cfg.Heartbeat/2), c.cfg.Heartbeat*3/4)
		b.resendAt = s.now.Add(b.every)
		s.sendVoters(c.request(s, b.lease))
	}
	s.wake(c.bid.resendAt)
}

// mayStillGrant reports whether the reachable voters that have not refused are a majority.
// Refusals for one of the given reasons do not count.
func (c *Contest) mayStillGrant(s *step, but ...election.RefusalReason) bool {
	return quorum.Confirmed(s.roster, func(id election.PeerID) bool {
		refused, has := c.bid.refused[id]
		return (!has || slices.Contains(but, refused.Reason)) && s.Reachable(id)
	})
}

// request asks for the lease with which the votes will count. The term of a former life may have
// another lease than this life uses (K4e).
func (c *Contest) request(s *step, l *quorum.Lease) election.VoteRequest {
	return election.VoteRequest{Election: c.name, Term: l.Term, Holder: c.cfg.Self,
		Lease: l.Length(), Rank: c.rank(), Roster: *s.roster}
}

// failBid gives the votes back and waits a random time (Ongaro 2014, section 3.4). After a
// second failure this agent stands down, so that the next candidate goes first.
func (c *Contest) failBid(s *step, f election.Field) {
	c.giveUp(s)
	c.notBefore = max(c.notBefore, s.now.Add(c.cfg.Jitter(c.cfg.Heartbeat)))
	c.failures++
	if c.failures >= 2 && len(f.Ranks) > 1 {
		c.failures = 0
		c.standDowns[c.cfg.Self.Peer] = s.now.Add(c.cfg.Lease)
		s.wake(s.now.Add(c.cfg.Lease))
	}
	s.wake(c.notBefore)
}

func (c *Contest) giveUp(s *step) {
	if c.Role() == Nominee {
		c.abandon(s)
		c.selection.Stop()
	}
}

// abandon ends a nominee's bid and gives its votes back at once. Nothing has to stop first,
// because nothing acts under a nominee's term (H6).
func (c *Contest) abandon(s *step) {
	if c.Role() == Nominee {
		s.sendVoters(election.Release{Election: c.name, Term: c.bid.lease.Term, Holder: c.cfg.Self})
		c.bid = nil
	}
}

// HeedRound lets the sender of a Vote Request go first, if it ranks higher and no leader is known.
func (c *Contest) HeedRound(f Facts, asker election.Rank) Verdict {
	s := new(step).begin(c, f)
	if c.held == nil && asker.Above(c.rank()) && c.candidate &&
		(c.leader.Holder == (election.Holder{}) || c.vacant(s)) {
		c.giveUp(s)
		c.begun = false
		c.selection.StandBack(s.now, c.field(s), asker)
	}
	return s.out
}

// VoteGranted counts a vote for the term that this agent asks for or leads. The instant `sent` is when
// the request left: the lease counts from then (H4). If fresh is false, that is not known: the vote is too old to count.
func (c *Contest) VoteGranted(f Facts, from election.PeerID, m election.VoteGrant, sent election.Instant, fresh bool) Verdict {
	s := new(step).begin(c, f)
	s.out.Late = m.Term == c.late
	switch {
	case fresh && c.asksFor(m.Term):
		c.bid.lease.Count(from, sent, m.Version)
		c.bid.word.vote(from, m)
		delete(c.bid.refused, from)
	case fresh && c.Role() == Leader && c.held.term == m.Term:
		c.held.lease.Count(from, sent, m.Version)
		c.held.word.vote(from, m)
		delete(c.held.disputed, from)
	case fresh && c.Role() == Leaving && c.held.term == m.Term:
		c.held.word.vote(from, m) // the programs may replace the word until their receipt (W12)
	case c.Role() == Follower:
		// A vote for a bid that was given up: the voter need not keep it.
		s.send(from, election.Release{Election: m.Election, Term: m.Term, Holder: c.cfg.Self})
	}
	return s.out
}

func (c *Contest) asksFor(t election.Term) bool { return c.bid != nil && c.bid.lease.Term == t }

func (c *Contest) VoteRefused(f Facts, from election.PeerID, m election.VoteRefusal) Verdict {
	s := new(step).begin(c, f)
	if m.Reason == election.RefusedFloor && s.roster != nil {
		c.highest = max(c.highest, s.roster.Floor)
		if r := m.Roster; r != nil && r.Cluster == s.roster.Cluster && r.Version == s.roster.Version {
			c.Learn(r.Floor) // a voter keeps the floor of a roster that it had before (R5)
		}
	}
	if m.Remaining > 0 && m.GrantedTo != c.cfg.Self {
		c.heedRecord(s, election.Record{Election: m.Election, Term: m.Granted, Holder: m.GrantedTo, Remaining: m.Remaining})
	}
	switch {
	case !s.roster.Has(from):
	case c.asksFor(m.Term):
		c.bid.refuse(from, m)
	case c.Role() == Leader && c.held.term == m.Term && lowTerm(m):
		c.dispute(s, from)
	}
	return s.out
}

// Reconnected handles a voter that has just connected: messages sent to it earlier may be lost. A nominee
// repeats its request. If a former life's term was released, the voter gets the release.
func (c *Contest) Reconnected(f Facts, voter election.PeerID) Verdict {
	s := new(step).begin(c, f)
	switch {
	case c.Role() == Nominee && s.roster.Has(voter):
		s.send(voter, c.request(s, c.bid.lease))
	case c.held == nil && s.now < c.unheardUntil:
		s.send(voter, c.unheard)
	}
	return s.out
}

// Reroster continues under a roster that has just become durable. A lease that was earned stays
// valid, and this agent asks for the votes again (R6).
func (c *Contest) Reroster(f Facts) Verdict {
	s := new(step).begin(c, f)
	if c.held != nil && c.held.lease != nil {
		c.held.lease.Reroster(s.roster)
		c.held.word.reroster(s.roster)
	}
	if c.Role() == Leader || c.Role() == Nominee && c.bid.lease.Term <= s.roster.Floor {
		c.highest = max(c.highest, s.roster.Floor)
		c.giveUp(s)
	}
	if b := c.bid; b != nil {
		b.lease.Reroster(s.roster)
		b.word.reroster(s.roster)
		b.resendAt = s.now
		clear(b.refused)
	}
	if c.Role() == Leader && c.held.lease != nil && c.held.term > s.roster.Floor { // a leader of a term up to the floor overtakes it instead
		s.sendVoters(c.request(s, c.held.lease))
	}
	return s.out
}
