package contest

import (
	"iter"
	"maps"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// becomeLeader starts to lead: a majority has granted the term (H5), or the agents need no quorum.
func (c *Contest) becomeLeader(s *step, won *tenure) {
	s.out.Won = true
	c.held, c.bid = won, nil
	c.outdate(won.term - 1)
	c.rival = rival{}
	c.found(Known{Holder: c.cfg.Self, Term: won.term, Rank: c.rank(), Until: c.LeaseEnd(s.now), Heard: s.now})
	c.counts.TermsWon++
	s.sendAll(c.selection.Confirmed(c.field(s), election.Leadership{Leader: c.cfg.Self, Term: won.term}))
	c.selection.Stop()
	c.announce(s, election.Announcement{Event: election.Leading, Leader: c.cfg.Self, Term: won.term, Reason: election.ReasonElected, Word: c.Word()})
	s.out.Beat = true // claim and renew at once
	c.lead(s)
}

func (c *Contest) LeaseEnd(now election.Instant) election.Instant {
	if c.held.lease == nil {
		return now.Add(c.cfg.Lease)
	}
	return c.held.lease.End()
}

// lead continues a leadership. It overtakes the term if that can't be renewed any more, and
// gives way to a candidate of higher priority.
func (c *Contest) lead(s *step) {
	if !c.allowed(s) { // the voters refuse to renew the term; the rest of the lease is for an orderly end
		c.stepDown(s, election.Ending{Reason: election.ReasonNotAllowed})
		return
	}
	c.overtakeTerm(s)
	c.advanceWord(s)
	c.Refresh(s.now)
	if c.held.lease != nil {
		s.wake(c.actsUntil(c.held.lease))
	} else {
		s.wake(s.now.Add(c.cfg.Heartbeat)) // without quorum, Refresh must prolong how long this agent names itself
	}
	c.giveWay(s)
}

// Refresh updates what this agent shows of its own leadership. It returns true if that has changed.
func (c *Contest) Refresh(now election.Instant) bool {
	if c.Role() != Leader {
		return false
	}
	before := c.leader
	c.leader.Until, c.leader.Heard, c.leader.Rank = c.LeaseEnd(now), now, c.rank()
	if c.held.lease != nil {
		c.leader.Heard = c.held.lease.Heard()
	}
	return c.leader != before
}

// overtakeTerm takes a higher term from the same voters when the present one can't be renewed any more. The
// leader stays, the fencing token rises, and there is no gap between the leases (R6).
func (c *Contest) overtakeTerm(s *step) {
	if c.held.lease == nil && c.held.outworn {
		s.out.Remember = c.newTerm(s)
		c.overtake(s, &tenure{term: s.out.Remember})
		return
	}
	if c.held.lease == nil || s.roster == nil || !c.outlived(s) {
		return
	}
	floor := s.roster.Floor
	if c.held.term <= floor && c.goBack(s) || c.bid == nil || c.bid.lease.Term <= floor || c.bid.tooLow(s.roster) {
		c.bid = c.newBid(s)
	}
	if s.now < c.actsUntil(c.bid.lease) && c.bid.lease.End() >= c.held.lease.End() { // programs must get no earlier deadline
		c.overtake(s, &tenure{term: c.bid.lease.Term, lease: c.bid.lease, word: c.bid.word})
		return
	}
	c.seekVotes(s)
}

// overtake continues the leadership in a higher term.
func (c *Contest) overtake(s *step, next *tenure) {
	c.held, c.bid = next, nil
	c.leader.Term, c.leader.Until = next.term, c.LeaseEnd(s.now)
	c.announce(s, election.Announcement{Event: election.NewTerm, Leader: c.cfg.Self, Term: next.term, Reason: election.ReasonElected})
	s.out.Beat = true
}

// Ends reports whether this leader's lease is about to end. If so, it steps down (H5) before any
// other step: a leader that was frozen must not act on messages that it receives next.
func (c *Contest) Ends(now election.Instant) bool {
	return c.held != nil && c.held.leaving == nil && c.held.lease != nil && now >= c.actsUntil(c.held.lease)
}

// guard is how long before the end of its lease a leader steps down. An agent starts to lead
// only if more than this is left of its lease.
func guard(c *election.Config) time.Duration { return c.Stagger() }

// actsUntil is until when this agent may start to lead, or go on leading, by a lease. If no
// majority has granted the lease yet, that instant is in the past.
func (c *Contest) actsUntil(l *quorum.Lease) election.Instant { return l.End().Add(-guard(c.cfg)) }

// Claimable reports whether heartbeats claim the term. They do while this agent leads, and also while it hands over,
// so that no other agent starts a round before the release. As long as they do, programs may replace the word (W12).
func (c *Contest) Claimable() bool {
	return c.Role() == Leader || c.Role() == Leaving && c.held.leaving.orderly()
}

func (c *Contest) Claim(now election.Instant, send election.SendID) election.Claim {
	if c.held.firstBeat == 0 {
		c.held.firstBeat = send
	}
	until := c.LeaseEnd(now)
	if c.Role() == Leaving {
		until = c.held.leaving.StopBy
	}
	claim := election.Claim{Election: c.name, Term: c.held.term, Remaining: max(0, until.Sub(now))}
	if !c.cfg.Quorum {
		claim.Rank = c.rank()
	}
	return claim
}

func (c *Contest) Disputed() iter.Seq[election.PeerID] { return maps.Keys(c.held.disputed) }

// Renewed counts a voter's answer that renews the claim; the heartbeat left at the instant `sent`
// (H4). It reports whether a majority has now renewed the claim. Then Advance should be called.
func (c *Contest) Renewed(voter election.PeerID, m *election.HeartbeatAck, sent election.Instant) bool {
	if !c.ClaimedBy(m.Send) {
		return false
	}
	l := c.held.lease
	end, heard := l.End(), l.Heard()
	l.Count(voter, sent, m.Version)
	delete(c.held.disputed, voter)
	return l.End() > end || l.Heard() > heard // answers that come after those of a majority change neither
}

// Nacked handles a voter's refusal to renew the claim of that heartbeat. If the voter has
// granted a higher term, it disputes this term. Otherwise the leader asks for its vote.
func (c *Contest) Nacked(f Facts, voter election.PeerID, send election.SendID, n election.Nack) Verdict {
	s := new(step).begin(c, f)
	if !c.ClaimedBy(send) {
		return s.out
	}
	if c.Learn(n.Term) && n.Term > c.held.term {
		c.dispute(s, voter)
		s.out.Again = true
	}
	if n.Term <= c.held.term && c.held.term > s.roster.Floor {
		s.send(voter, c.request(s, c.held.lease))
	}
	return s.out
}

// ClaimedBy reports whether that heartbeat claimed the term which this agent leads (H4).
func (c *Contest) ClaimedBy(send election.SendID) bool {
	return c.Role() == Leader && c.held.lease != nil && c.held.firstBeat != 0 && send >= c.held.firstBeat
}

type rival struct {
	peer  election.PeerID
	since election.Instant
}

// maxPatience bounds how many times the preempt delay is doubled.
const maxPatience = 8

// offered counts a transfer to an agent. Each transfer doubles the delay before the next one to the same agent,
// so that a candidate that can't lead does not cost a gap again and again. Only the last target is remembered.
func (c *Contest) offered(to election.PeerID) {
	c.vain = map[election.PeerID]int{to: min(c.vain[to]+1, maxPatience)}
}

// MayTake reports whether the agent was not the last target of a transfer, or has led since then.
func (c *Contest) MayTake(p election.PeerID) bool { return c.vain[p] == 0 }

// giveWay transfers to a candidate of strictly higher priority that was present for the preempt delay. A
// last resort transfers at once, to any candidate. Only the leader itself can end its term.
func (c *Contest) giveWay(s *step) {
	own, delay := c.priority, c.cfg.PreemptDelay
	if c.LastResort {
		own, delay = 0, 0
	} else if !c.cfg.Preempt {
		return
	}
	best := s.Best()
	if best.Priority <= own {
		c.rival = rival{}
		return
	}
	if c.rival.peer != best.Peer {
		c.rival = rival{peer: best.Peer, since: s.now}
	}
	if vain := c.vain[best.Peer]; vain > 0 {
		delay = max(delay, c.cfg.Lease) << vain
	}
	due := c.rival.since.Add(delay)
	if s.now >= due && !s.SharesRoster(best.Peer) {
		due = s.now.Add(c.cfg.Heartbeat) // the rival's next answer shows its roster
	}
	if s.now < due {
		s.wake(due)
		return
	}
	c.stepDown(s, election.Ending{Reason: election.ReasonPreempted})
}

func anybody(election.PeerID) bool { return true }

func bestOf(f Facts, eligible func(election.PeerID) bool) election.Rank {
	var best election.Rank
	for r := range f.Candidates() {
		if eligible(r.Peer) && (best.Peer == "" || r.Above(best)) {
			best = r
		}
	}
	return best
}

// outlived reports whether this leader needs a higher term (R6): because a new roster's floor has reached its term,
// because it has begun to ask for one, or because of disputes. A voter disputes the term if it has granted that term
// to another holder, or a higher term. Disputes count while a majority is reachable. They need a higher term if the
// reachable voters without a dispute are not a majority, if half the lease has passed without a renewal, or if a
// reachable voter has disputed for long. Without its vote, one more silent voter could end the leadership.
func (c *Contest) outlived(s *step) bool {
	switch {
	case c.held.term <= s.roster.Floor, c.bid != nil, c.held.outworn:
		return true
	case len(c.held.disputed) == 0, !quorum.Confirmed(s.roster, s.Reachable), !s.Writes():
		return false
	}
	if !quorum.Confirmed(s.roster, func(id election.PeerID) bool {
		_, disputes := c.held.disputed[id]
		return s.Reachable(id) && !disputes
	}) {
		return true
	}
	due := c.held.lease.End().Add(-c.cfg.Lease / 2)
	for id, since := range c.held.disputed {
		if s.Reachable(id) {
			due = min(due, since.Add(c.cfg.VoteTimeout()+c.cfg.Heartbeat))
		}
	}
	if s.now < due {
		s.wake(due)
		return false
	}
	return true
}

func (c *Contest) dispute(s *step, voter election.PeerID) {
	if _, known := c.held.disputed[voter]; known || !s.roster.Has(voter) {
		return
	}
	if c.held.disputed == nil {
		c.held.disputed = map[election.PeerID]election.Instant{}
	}
	c.held.disputed[voter] = s.now
}
