package roster

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A newer roster is adopted without a vote (R2), but only from a voter that this agent knows: a
// copy of this cluster, changed elsewhere, could otherwise replace its voters.

// Peer is what this agent knows of the roster of a connected agent.
type Peer struct {
	Level        uint64           // its feature level
	Beat         time.Duration    // its configured heartbeat; 0: not known
	Reported     bool             // its Report has arrived since it connected
	Holds        election.Version // the version that it was last known to hold; zero: none
	doubted      doubted
	differsSince election.Instant // since when it, a voter or to be added, holds a roster with which it can't vote; 0: it does not
	bringUpAt    election.Instant // when the present roster is sent to it again
}

// doubted is a peer's newest roster that this agent did not adopt.
type doubted struct {
	version election.Version
	voters  string
	why     Doubt
}

// Doubt is why a newer roster is not adopted.
type Doubt uint8

const (
	Refused     Doubt = iota + 1 // an operator has refused it
	FromUnknown                  // no voter that this agent knows has reported it
	DropsMany                    // it drops several voters, and a majority still holds the present roster
	OtherDriver                  // the agent that proposes it is not a voter that this one knows
)

// Doubted returns the voters of this peer's newer roster, and why it is not adopted; 0: none is.
func (p *Peer) Doubted(present *election.Roster) (voters string, why Doubt) {
	if !present.Version.Before(p.doubted.version) {
		return "", 0
	}
	return p.doubted.voters, p.doubted.why
}

func (s *step) doubt(from election.PeerID, r *election.Roster, why Doubt) {
	s.out.Dropped = "doubted_roster"
	if p := s.Peer(from); p != nil {
		p.doubted = doubted{version: r.Version, voters: strings.Join(election.Names(r.All(), nil), ","), why: why}
	}
}

// Learn adopts a newer roster of a peer, unless there is an objection.
func (c *Change) Learn(f Facts, from election.PeerID, r *election.Roster) Verdict {
	s := new(step).begin(c, f)
	if r == nil || !c.cfg.Quorum {
		return s.out
	}
	if p := f.Peer(from); p != nil {
		p.Holds = r.Version
	}
	held := c.ledger.State().Roster
	if held == nil || held.Cluster != r.Cluster || !held.Version.Before(r.Version) {
		c.formation.Learn(s.now, r)
		return s.out
	}
	switch why := c.objection(s, from, held, r); {
	case why != 0:
		s.doubt(from, r, why)
	case lost(held, r) > 1:
		c.voter.AdoptKeeping(s.now, r)
	default:
		c.formation.Learn(s.now, r)
	}
	return s.out
}

// objection is why a peer's newer roster is not adopted; 0: it is.
func (c *Change) objection(s *step, from election.PeerID, held, r *election.Roster) Doubt {
	switch {
	case r.Version == c.ledger.State().Refused:
		return Refused
	case from != c.cfg.Self.Peer && !held.Has(from):
		return FromUnknown
	case lost(held, r) > 1 && c.stillHeld(s, held):
		c.askVoters(s, held)
		return DropsMany
	}
	return 0
}

// lost counts the voters that would no longer decide. One change drops at most one voter:
// if more are lost, this agent missed several changes, or they were made elsewhere.
func lost(held, r *election.Roster) int {
	n := 0
	for _, v := range held.Counted() {
		if !r.Has(v.Peer) {
			n++
		}
	}
	return n
}

// stillHeld reports whether a majority of the former voters (of each half, if the held roster
// is marked) is known to hold no newer roster: then no newer one can be committed.
func (c *Change) stillHeld(s *step, held *election.Roster) bool {
	return quorum.Confirmed(held, func(id election.PeerID) bool {
		p := s.Peer(id)
		return id == c.cfg.Self.Peer || p != nil && s.Reachable(id) && p.Holds != (election.Version{}) && !held.Version.Before(p.Holds)
	})
}

// askVoters asks the voters what they hold now, at most once a heartbeat.
func (c *Change) askVoters(s *step, held *election.Roster) {
	if s.now < c.askAt {
		return
	}
	c.askAt = s.now.Add(c.cfg.Heartbeat)
	for _, v := range held.Counted() {
		if v.Peer != c.cfg.Self.Peer && s.Peer(v.Peer) != nil {
			s.send(v.Peer, election.Inquiry{Election: election.RosterElection})
		}
	}
}

// Propose gives a proposal to this agent's voter. The driver must be a voter of the roster
// held here: an agent that missed a change has to learn of that first.
func (c *Change) Propose(f Facts, from election.PeerID, m election.RosterPropose) Verdict {
	s := new(step).begin(c, f)
	state := c.ledger.State()
	held := state.Roster
	if held == nil || from == c.cfg.Self.Peer || held.Cluster != m.Roster.Cluster || !held.Version.Before(m.Roster.Version) || held.Has(from) {
		c.voter.Propose(s.now, from, m)
		return s.out
	}
	s.doubt(from, &m.Roster, OtherDriver)
	c.askVoters(s, held)
	s.send(from, election.RosterRefuse{Driver: m.Driver, Version: m.Roster.Version,
		Granted: state.Grant(election.RosterElection).Term, Roster: s.roster})
	return s.out
}

// Votes count at one version of the roster only. A voter with an older version adopts the
// present one as soon as it learns of it, unless its disk is full, or unless it believes
// nobody since all voters that it knows were replaced. It can't vote, so it is not reachable.

// differs reports whether a voter, or an agent to be added, is known to hold a roster with
// which it can't vote.
func (c *Change) differs(s *step, id election.PeerID, p *Peer) bool {
	switch {
	case p.Holds == election.Version{}:
		return false
	case s.roster.Has(id):
		return p.Holds.Before(s.roster.Version)
	}
	return c.joins(s, id) && p.Holds != s.roster.Version
}

// joins reports whether the peer is to be added by a change that has not started.
func (c *Change) joins(s *step, id election.PeerID) bool {
	w := c.want
	return w != nil && s.roster.Version == w.former.Version && c.driver == nil && !s.roster.Has(id) && w.goal.Has(id)
}

// bringUp has the present roster sent to the peers that hold another one.
func (c *Change) bringUp(s *step) {
	for _, id := range s.Connected() {
		p := s.Peer(id)
		if !c.differs(s, id, p) {
			p.differsSince = 0
			continue
		}
		if p.differsSince == 0 {
			p.differsSince, p.bringUpAt = s.now, s.now
			if !c.joins(s, id) {
				p.bringUpAt = s.now.Add(c.cfg.Heartbeat) // the present roster may be on its way
			}
		}
		if s.now >= p.bringUpAt {
			p.bringUpAt = s.now.Add(c.cfg.Heartbeat)
			s.out.Report = append(s.out.Report, id)
		}
		s.wake(p.bringUpAt)
		if !c.Behind(s.now, p) {
			s.wake(p.differsSince.Add(c.cfg.Lease))
		}
	}
}

// Behind reports whether the peer has not adopted the present roster for a lease.
func (c *Change) Behind(now election.Instant, p *Peer) bool {
	return p.differsSince != 0 && now >= p.differsSince.Add(c.cfg.Lease)
}

// joinersReady reports whether the agents to be added hold the present roster, or none.
func (c *Change) joinersReady(s *step) bool {
	return !slices.ContainsFunc(s.Connected(), func(id election.PeerID) bool {
		p := s.Peer(id)
		return c.joins(s, id) && (c.differs(s, id, p) || !p.Reported && p.Holds == election.Version{})
	})
}

// behindJoiner is the name of an agent to be added that does not adopt the present roster.
func (c *Change) behindJoiner(s *step) string {
	for _, id := range s.Connected() {
		if c.joins(s, id) && c.Behind(s.now, s.Peer(id)) {
			return s.NameOf(id)
		}
	}
	return ""
}
