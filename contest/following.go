package contest

import (
	"maps"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Prolong handles a claim that only prolongs how long the leader is named. With a thousand
// elections, nearly all claims do only this, so it takes a short path. It returns when Advance
// is to be called. It returns false if the claim changes more: then Claimed must handle it.
func (c *Contest) Prolong(f Facts, claimed Known) (election.Instant, bool) {
	now, k := f.Now(), &c.leader
	if k.Holder != claimed.Holder || k.Term != claimed.Term || claimed.Until <= now || c.Role() != Follower || c.Vacant() || c.Active() ||
		c.failures > 0 || c.notBefore != 0 || c.rumour != (rumour{}) {
		return 0, false
	}
	k.Rank, k.Heard, k.Until = claimed.Rank, max(k.Heard, claimed.Heard), max(k.Until, claimed.Until)
	return min(k.Until, f.SuspectAt(k.Holder.Peer), c.holdChanges(f)), true
}

// Claimed handles one claim in a heartbeat, or in the News of a voter that received the heartbeat. k.Until is the
// earliest instant at which the claimed lease may end. The claim was sent after the instant `sent`; 0: not known.
func (c *Contest) Claimed(f Facts, k Known, sent election.Instant) Verdict {
	s := new(step).begin(c, f)
	switch confirmed := c.confirms(s, k.Holder, k.Term); {
	case confirmed && !c.Learn(k.Term):
	case !k.Term.Follows(c.highest):
		c.counts.TermLeaps++
	case k.Term <= c.ended || c.gone.outdates(k.Holder, k.Term, sent) || c.Role() == Leader && !confirmed:
		// a late message, or a claim that no voter confirms while this agent leads
	case c.Role() == Leader && !c.yields(k), k.Term < c.leader.Term:
	case c.Role() != Leader && k.Term == c.leader.Term && k.Holder != c.leader.Holder && c.leader.Rank.Above(k.Rank):
		// two agents lead without quorum: all name the better one until the other steps down
	case c.Role() == Leader:
		c.stepDown(s, election.Ending{Reason: election.ReasonSuperseded})
		c.heed(s, k)
	case c.Role() == Leaving, k.Until <= s.now:
		c.heed(s, k)
	default:
		c.follow(s, k, confirmed)
	}
	return s.out
}

// heed waits for the next heartbeat of an agent that claims to lead, but can't be named yet. That heartbeat echoes
// this agent's stamp, and so shows how long the lease runs. An agent that hands over waits too: it must start no
// round against the other leader after its release.
func (c *Contest) heed(s *step, k Known) {
	c.rumour = rumour{holder: k.Holder, term: k.Term, heedUntil: s.now.Add(2 * c.cfg.Heartbeat), promiseEnd: c.rumour.promiseEnd}
}

// yields reports whether this leader steps down because another agent claims to lead. It yields
// to a higher term, and without quorum also to a better rank in the same term.
func (c *Contest) yields(other Known) bool {
	if c.cfg.Quorum || other.Term != c.held.term {
		return other.Term > c.held.term
	}
	return other.Rank.Above(c.rank())
}

func (c *Contest) Released(f Facts, m election.Release) Verdict {
	s := new(step).begin(c, f)
	if c.confirms(s, m.Holder, m.Term) && !c.Learn(m.Term) {
		return s.out
	}
	maps.DeleteFunc(c.standDowns, func(_ election.PeerID, until election.Instant) bool { return until <= s.now })
	if m.StandDown > 0 {
		c.standDowns[m.Holder.Peer] = s.now.Add(min(m.StandDown, 2*c.cfg.Lease))
	}
	if c.rumour.holder == m.Holder && c.rumour.term <= m.Term {
		c.rumour = rumour{}
	}
	switch followed := c.leader.Holder == m.Holder; {
	case c.held != nil,
		followed && m.Term < c.leader.Term, // a late message about a term that its holder has overtaken
		!followed && (c.leader.Holder != (election.Holder{}) || m.StandDown == 0 && m.Target == ""): // about a bid that was given up, or about an old term
		return s.out
	case !followed:
	case c.confirms(s, m.Holder, c.leader.Term):
		c.outdate(c.leader.Term)
	default: // the holder may have made the term up, so terms of other holders may go on
		c.gone = gone{holder: m.Holder, term: c.leader.Term}
		if c.cfg.Quorum {
			c.gone.at = s.now
		}
	}
	c.forget(s, election.ReasonReleased)
	c.vacantSince = min(c.vacantSince, s.now)
	c.takeTurns(s, m.Target)
	return s.out
}

// takeTurns lets the target of a transfer ask for votes at once. All other agents first wait for one vote timeout.
func (c *Contest) takeTurns(s *step, target election.PeerID) {
	if target == "" {
		return
	}
	c.offered(target)
	if target != c.cfg.Self.Peer {
		c.notBefore = max(c.notBefore, s.now.Add(c.cfg.VoteTimeout()))
		return
	}
	c.notBefore = 0
	delete(c.standDowns, target)
	if f := c.field(s); f.Able && c.Role() == Follower {
		c.selection.Stop()
		c.nominate(s, f)
	}
}

// Record learns the term of a grant that a voter reports, and may then wait for a heartbeat of the grant's holder.
func (c *Contest) Record(f Facts, g election.Record) Verdict {
	s := new(step).begin(c, f)
	c.heedRecord(s, g)
	return s.out
}

func (c *Contest) heedRecord(s *step, g election.Record) {
	if !c.Learn(g.Term) || g.Remaining <= 0 || g.Holder == c.cfg.Self || g.Term < c.rumour.term {
		return
	}
	end := max(c.rumour.promiseEnd, s.now.Add(min(g.Remaining, quorum.Outlast(c.cfg.Lease, c.cfg.Drift))))
	if g.Term <= c.ended {
		c.rumour.promiseEnd = end // the term has ended, but that voter still keeps its promise
		return
	}
	c.rumour = rumour{holder: g.Holder, term: g.Term, heedUntil: s.now.Add(min(g.Remaining, 2*c.cfg.Heartbeat)), promiseEnd: end}
}

// Suspended ends every lease and bid from before the suspend of the host. Late answers do no harm:
// they are about terms that this agent never asks for again, or about earlier heartbeats (H1, H4).
func (c *Contest) Suspended(f Facts) Verdict {
	s := new(step).begin(c, f)
	switch c.Role() {
	case Leader:
		c.stepDown(s, election.Ending{Reason: election.ReasonSuspended})
		return s.out
	case Leaving:
		c.held.leaving.suspended = true // heartbeats that still claim the term would make others name this agent for too long
	default:
		c.giveUp(s)
	}
	if k := c.leader; k.Holder != (election.Holder{}) { // this leader is named again when its heartbeat echoes an instant after the suspend
		c.forget(s, election.ReasonSuspended)
		if c.cfg.Quorum && c.vacantSince == election.Never {
			c.heed(s, k) // the leader gets time to send such a heartbeat before this agent seeks another leader
		}
	}
	return s.out
}
