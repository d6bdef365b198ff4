package contest

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// seek continues a round or a bid. If there is no leader and it is this agent's turn, it starts a round of selection.
func (c *Contest) seek(s *step) {
	if c.Role() == Nominee && s.now < c.actsUntil(c.bid.lease) {
		if c.bid.word.settled() {
			c.becomeLeader(s, &tenure{term: c.bid.lease.Term, lease: c.bid.lease, word: c.bid.word})
			return
		}
		if !c.bid.rewrites { // the voters need time to write the word to disk again
			c.bid.rewrites, c.bid.deadline = true, max(c.bid.deadline, s.now.Add(c.cfg.VoteTimeout()))
		}
		c.bid.word.send(s, c)
	}
	if !c.vacant(s) {
		if c.Role() == Nominee { // two nominees that refuse each other must not start again at the same moment
			c.notBefore = max(c.notBefore, s.now.Add(c.cfg.Jitter(c.cfg.Heartbeat)))
		}
		c.abandon(s)
		c.selection.Stop()
		c.vacantSince = election.Never
		if c.leader.Holder != (election.Holder{}) {
			c.missedSince = election.Never
		}
		return
	}
	c.vacantSince, c.missedSince = min(c.vacantSince, s.now), min(c.missedSince, s.now)
	f := c.field(s)
	c.apply(s, f, c.selection.Tick(s.now, f)) // also if this agent started no round: Ring passes on the tokens of others
	switch {
	case c.Role() == Nominee:
		c.pursue(s, f)
	case c.selection.Active():
	case f.Able:
		if informed, by := s.Informed(); !informed {
			s.wake(by)
			return
		}
		c.startInTurn(s, f)
	case !c.mayLead(s.now, c.cfg.Self.Peer):
		s.wake(c.standDowns[c.cfg.Self.Peer])
	}
}

// startInTurn starts a round after the better candidates have had time to start theirs. So not
// all candidates start at once when a leader is lost.
func (c *Contest) startInTurn(s *step, f election.Field) {
	turn := slices.IndexFunc(f.Ranks, func(r election.Rank) bool { return r.Peer == c.cfg.Self.Peer })
	if s.Doubts() { // agents that doubt do not see each other as candidates, so their peer IDs set the order
		before, _ := slices.BinarySearch(s.Connected(), c.cfg.Self.Peer)
		turn += 1 + before
	}
	start := max(c.vacantSince.Add(time.Duration(turn)*c.cfg.Stagger()), s.FirstTurn(), c.notBefore)
	if s.now < start {
		s.wake(start)
		return
	}
	if f.Closed {
		s.out.Queue = true
		return
	}
	c.begun = true
	c.counts.Rounds++
	c.apply(s, f, c.selection.Start(s.now, f))
}

// Contests reports whether this agent's own round or bid is in progress. The round of a better
// candidate, for which this agent waits, does not count.
func (c *Contest) Contests() bool { return c.Role() == Nominee || c.begun && c.selection.Active() }

// vacant reports whether no leader is known or awaited, or the known leader seems lost. The
// lease of a lost leader may still run: selection then uses the time until it ends.
func (c *Contest) vacant(s *step) bool {
	if c.leader.Holder != (election.Holder{}) {
		due := s.SuspectAt(c.leader.Holder.Peer)
		switch {
		case !s.Runs(c.leader.Holder):
		case s.now < due:
			s.wake(due)
			return false
		case c.vacantSince == election.Never:
			c.counts.Suspicions++
		}
		return true
	}
	until := c.rumour.heedUntil
	if !s.Runs(c.rumour.holder) {
		until = min(until, s.ConnectsBy())
	}
	if s.now < until && !s.Silent(c.rumour.holder.Peer) {
		s.wake(until)
		return false
	}
	return true
}

// Receive handles a message of Bully or Ring. A follower that could lead drops it while it knows or awaits a
// live leader: the sender will get that leader's heartbeats.
func (c *Contest) Receive(f Facts, from election.PeerID, m election.Message) Verdict {
	s := new(step).begin(c, f)
	if c.Role() != Follower || c.vacant(s) || !c.candidate || c.unable(s) != 0 {
		f := c.field(s)
		c.apply(s, f, c.selection.Receive(s.now, f, from, m))
	}
	return s.out
}

// apply carries out the verdict of the selection algorithm.
func (c *Contest) apply(s *step, f election.Field, v election.Verdict) {
	s.sendAll(v.Send)
	s.wake(v.WakeAt)
	switch {
	case !v.Nominee || c.Role() != Follower || !f.Able:
	case !c.begun && s.Full():
		// Another agent's round chose this agent, but this agent may not start a further bid yet.
		c.selection.Stop()
		s.out.Queue = true
	default:
		c.nominate(s, f)
	}
}

// holds reports whether this agent needs its own vote to win, but can't have it yet because of a
// promise of an earlier process run (V5). Its bid would only take votes from a candidate that can
// lead at once. The vote of an agent that shuts down helps to win, but not to renew. So such a vote
// counts only if the hold ends within the first lease (soon).
func (c *Contest) holds(s *step) bool {
	held := s.HoldEnd()
	if s.now >= held {
		return false
	}
	soon := s.now >= held.Add(-holdOutlived(c.cfg))
	return !quorum.Confirmed(s.roster, func(id election.PeerID) bool {
		return id != c.cfg.Self.Peer && s.Reachable(id) && (soon || !s.StopsSoon(id))
	})
}

// holdOutlived is how long a new leadership can do without the vote of an agent with a hold: its
// first lease, less some slack.
func holdOutlived(c *election.Config) time.Duration {
	return quorum.HolderLease(c.Lease, c.Drift) - 2*guard(c)
}

// holdChanges is the next instant at which this agent's hold matters less, or ends; Never if there is no hold.
func (c *Contest) holdChanges(f Facts) election.Instant {
	now, held := f.Now(), f.HoldEnd()
	switch soon := held.Add(-holdOutlived(c.cfg)); {
	case now < soon:
		return soon
	case now < held:
		return held
	}
	return election.Never
}
