package contest

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// seek starts a round of selection when there is no leader and it is this agent's turn, and
// follows up a round or a bid.
func (c *Contest) seek(s *step) {
	if c.Role() == Nominee && s.now < c.actsUntil(c.bid.lease) {
		c.becomeLeader(s, &tenure{term: c.bid.lease.Term, lease: c.bid.lease})
		return
	}
	if !c.vacant(s) {
		if c.Role() == Nominee { // two nominees that refuse each other must not start again at one moment
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
	c.apply(s, f, c.selection.Tick(s.now, f)) // even if this agent began no round: Ring passes others' tokens on
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

// startInTurn starts a round once the better candidates had time to start theirs, so that
// not all start at once when a leader is lost.
func (c *Contest) startInTurn(s *step, f election.Field) {
	turn := slices.IndexFunc(f.Ranks, func(r election.Rank) bool { return r.Peer == c.cfg.Self.Peer })
	if s.Doubts() { // so may others, which then know of no better candidate either
		before, _ := slices.BinarySearch(s.Connected(), c.cfg.Self.Peer)
		turn += 1 + before
	}
	start := max(c.vacantSince.Add(time.Duration(turn)*c.cfg.Stagger()), s.FirstTurn(c.rank()), c.notBefore)
	if s.now < start {
		s.wake(start)
		return
	}
	if f.Full {
		s.out.Queue = true
		return
	}
	c.begun = true
	c.counts.Rounds++
	c.apply(s, f, c.selection.Start(s.now, f))
}

// Contests reports whether this agent has its own round or bid in progress. A better
// candidate's round, for which it waits, does not count.
func (c *Contest) Contests() bool { return c.Role() == Nominee || c.begun && c.selection.Active() }

// vacant reports whether no leader is known or awaited, or the known one seems lost. The lease
// of a lost leader may still run: selection uses the time until that ends.
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
	if s.now < c.rumour.heedUntil && s.Runs(c.rumour.holder) && !s.Silent(c.rumour.holder.Peer) {
		s.wake(c.rumour.heedUntil)
		return false
	}
	return true
}

// Receive handles a message of Bully or Ring, if this agent leads, or can't lead and must
// report that, or knows of no live leader. Else the leader's heartbeats will reach the sender.
func (c *Contest) Receive(f Facts, from election.PeerID, m election.Message) Verdict {
	s := new(step).begin(f)
	if c.Role() != Follower || c.vacant(s) || !c.candidate || c.unable(s) != 0 {
		f := c.field(s)
		c.apply(s, f, c.selection.Receive(s.now, f, from, m))
	}
	return c.end(s)
}

// apply carries out what the algorithm asks for.
func (c *Contest) apply(s *step, f election.Field, v election.Verdict) {
	s.sendAll(v.Send)
	s.wake(v.WakeAt)
	switch {
	case !v.Nominee || c.Role() != Follower || !f.Able:
	case !c.begun && s.Full():
		// Another agent's round asked it to take part: its own round waits for its turn.
		c.selection.Stop()
		s.out.Queue = true
	default:
		c.nominate(s, f)
	}
}

// holds reports whether this agent can't win without its own vote, which its voter can't give:
// the voter holds a promise of an earlier process run (V5). A bid would only keep the others'
// votes from a candidate that can lead at once. The vote of an agent that shuts down helps to
// win but not to renew, so it counts only if the hold ends within the first lease (soon).
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

// holdOutlived is how long a new leadership can do without a vote that a hold keeps back: its
// first lease, less some slack.
func holdOutlived(c *election.Config) time.Duration {
	return quorum.HolderLease(c.Lease, c.Drift) - 2*guard(c)
}

// holdChanges is when this agent's hold no longer hinders the election, or hinders it less;
// Never: there is no hold.
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
