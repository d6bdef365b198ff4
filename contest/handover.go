package contest

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// departure is why a leadership ends, and how far its end has come.
type departure struct {
	election.Ending      // To is the target of a transfer, or the heir of a leader that runs late or whose disk fails
	stopped         bool // all that acted under the term have stopped
	suspended       bool // the host was suspended after the leader stepped down
}

// orderly reports whether the lease was valid when the leader stepped down, and the lease's end is known for sure.
func (d departure) orderly() bool {
	return !d.suspended && d.Reason != election.ReasonLeaseExpired && d.Reason != election.ReasonSuperseded && d.Reason != election.ReasonSuspended
}

func (c *Contest) StepDown(f Facts, why election.Reason, to election.PeerID) Verdict {
	s := new(step).begin(c, f)
	if c.Role() == Leader {
		c.stepDown(s, election.Ending{Reason: why, To: to})
	}
	return s.out
}

func (c *Contest) Leave(f Facts, why election.Reason) Verdict {
	s := new(step).begin(c, f)
	if c.Role() == Leader {
		c.stepDown(s, election.Ending{Reason: why})
	}
	c.giveUp(s)
	return s.out
}

// stepDown makes all programs stop that act under the term. The term is released when they have
// stopped, or when their last deadline has passed (H6).
func (c *Contest) stepDown(s *step, e election.Ending) {
	e.StopBy = c.LeaseEnd(s.now)
	stopped := c.name == election.RosterElection // no program acts in that election
	c.held.leaving = &departure{Ending: e, stopped: stopped}
	s.out.Again = true
	if !stopped {
		c.withdraw(s)
	}
	c.forget(s, e.Reason)
	s.wake(e.StopBy)
}

func (c *Contest) withdraw(s *step) {
	d := c.held.leaving
	s.out.StepDown = append(s.out.StepDown, election.Withdrawal{Election: c.name, Term: c.held.term, StopBy: d.StopBy, Reason: d.Reason})
}

// Stopped takes the receipt: nothing acts under the term any more.
func (c *Contest) Stopped(t election.Term) {
	if c.Role() == Leaving && c.held.term == t {
		c.held.leaving.stopped = true
	}
}

func (c *Contest) finishLeaving(s *step) {
	d := c.held.leaving
	if !d.stopped && s.now < d.StopBy {
		c.advanceWord(s)
		s.wake(d.StopBy)
		return
	}
	target, standDown := c.successor(s)
	release := election.Release{Election: c.name, Term: c.held.term, Holder: c.cfg.Self,
		Target: target, StandDown: standDown, Leaving: s.StopsSoon(c.cfg.Self.Peer)}
	if c.held.word != nil {
		release.Forget, _ = c.held.word.Deleted()
	}
	if c.bid != nil { // the bid's term is higher, and may be granted. It is released first, so that the next leader asks for a term above it
		higher := release
		higher.Term, higher.Forget = c.bid.lease.Term, false
		c.releaseTo(s, higher)
	}
	c.releaseTo(s, release)
	if c.held.former {
		c.unheard, c.unheardUntil = release, d.StopBy
	}
	c.held, c.bid = nil, nil
	c.vacantSince = s.now
	if standDown > 0 {
		c.standDowns[c.cfg.Self.Peer] = s.now.Add(standDown)
	}
	if target != "" {
		c.offered(target)
		c.notBefore = s.now.Add(c.cfg.VoteTimeout())
	}
	c.seek(s)
}

// successor returns which agent should lead next (empty: any may), and for how long this agent
// lets others go first. It chooses at the release and not at the step-down, because the
// candidates may have changed while the programs stopped.
func (c *Contest) successor(s *step) (target election.PeerID, standDown time.Duration) {
	best := c.BestOf(s.Facts, anybody)
	d := c.held.leaving
	switch d.Reason {
	case election.ReasonPreempted:
		if best.Peer == "" || best.Priority <= c.priority && !c.LastResort {
			return "", 0 // the rival is gone
		}
		return best.Peer, 2 * c.cfg.VoteTimeout()
	case election.ReasonWithdrawn:
		if c.candidate && c.rank().Above(best) {
			return "", 0
		}
		return best.Peer, 0
	case election.ReasonTransferred:
		standDown = 2 * c.cfg.VoteTimeout() // so that the target goes first
	case election.ReasonResigned, election.ReasonDraining, election.ReasonShutdown, election.ReasonDisk, election.ReasonLate:
		standDown = c.cfg.Lease
	case election.ReasonBarred, election.ReasonNotAllowed:
	default:
		return "", 0
	}
	target = bestOf(s.Facts, func(p election.PeerID) bool { return p == d.To }).Peer
	if target == "" && best.Peer == "" {
		target = bestOf(s.Facts, anybody).Peer // only agents that stand down are left: as the target, the best of them need not wait
	}
	return target, standDown
}

func (c *Contest) releaseTo(s *step, m election.Release) {
	if s.roster.Has(c.cfg.Self.Peer) {
		s.send(c.cfg.Self.Peer, m)
	}
	for _, id := range s.Connected() {
		s.send(id, m)
	}
}

func (c *Contest) Stand(candidate bool, priority int) { c.candidate, c.priority = candidate, priority }

func (c *Contest) HasHeir(f Facts) bool { return bestOf(f, anybody).Peer != "" }

// BestOf returns the best other candidate that is eligible and may lead now; zero if there is none.
func (c *Contest) BestOf(f Facts, eligible func(election.PeerID) bool) election.Rank {
	now := f.Now()
	return bestOf(f, func(p election.PeerID) bool { return c.mayLead(now, p) && eligible(p) })
}
