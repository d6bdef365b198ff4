package roster

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// This agent adopts a newer roster without a vote (R2), but only from a voter that it knows. Otherwise a
// copy of this cluster, with voters changed elsewhere, could replace this cluster's voters.

// Peer is what this agent knows about a connected agent with regard to the roster.
type Peer struct {
	Level        uint64           // its feature level
	Beat         time.Duration    // its configured heartbeat interval; 0: not known
	Reported     bool             // its Report has arrived since it last connected
	Holds        election.Version // the version that it last reported; zero: not known
	Agrees       election.Version // the newest version that it has reported without having voted for a later driver
	doubted      doubted
	differsSince election.Instant // since when a present or future voter has had a roster with which it can't vote; 0: no such roster is known
	bringUpAt    election.Instant // when this agent sends it the present roster again
}

// doubted is the newest roster of a peer that this agent did not adopt.
type doubted struct {
	version election.Version
	voters  string
	why     Doubt
}

// Doubt is why this agent does not adopt a newer roster.
type Doubt uint8

const (
	Refused     Doubt = iota + 1 // an operator went back from this version
	FromUnknown                  // the peer that reported it is not a voter that this agent knows
	DropsMany                    // it drops several voters, and a majority still has the present roster
	OtherDriver                  // the agent that proposes it is not a voter that this agent knows
)

// Doubted returns the voters of this peer's newer roster, and why this agent did not adopt that roster;
// 0: there is no such roster.
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

// Learn adopts the newer roster of a peer, unless there is an objection.
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
	if why := c.objection(s, from, held, r); why != 0 {
		s.doubt(from, r, why)
	} else {
		c.voter.Adopt(s.now, r, lost(held, r) > 1)
	}
	return s.out
}

// objection is why this agent does not adopt a peer's newer roster; 0: it does.
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

// lost counts the voters of the held roster that the newer one lacks. One change drops at most one
// voter. So if more are lost, this agent missed several changes, or the newer one is from a copy of the cluster.
func lost(held, r *election.Roster) int {
	return len(election.Names(held.Counted(), func(v election.Voter) bool { return !r.Has(v.Peer) }))
}

// stillHeld reports whether a majority of the former voters (of each half, if their roster is
// marked) is known to have no newer roster. Then no newer roster can have been committed.
func (c *Change) stillHeld(s *step, held *election.Roster) bool {
	return quorum.Confirmed(held, func(id election.PeerID) bool {
		p := s.Peer(id)
		return id == c.cfg.Self.Peer || p != nil && s.Reachable(id) && p.Holds != (election.Version{}) && !held.Version.Before(p.Holds)
	})
}

// askVoters asks the voters which roster they have now, at most once in a heartbeat.
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

// Propose passes a proposal to this agent's voter. The proposal's driver must be a voter of this
// agent's roster: an agent that missed a change must first get the roster of that change.
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

// Votes count only at one version of the roster. A voter with an older version can't vote, and does not count
// as reachable. It adopts the present roster as soon as that arrives, unless its disk is full, or all voters
// that it knows were replaced: then it believes none of the present ones.

// differs reports whether the peer is a voter, or is to be added, and is known to have a roster
// with which it can't vote.
func (c *Change) differs(s *step, id election.PeerID, p *Peer) bool {
	switch {
	case p.Holds == election.Version{}:
		return false
	case s.roster.Has(id):
		return p.Holds.Before(s.roster.Version)
	}
	return c.joins(s, id) && p.Holds != s.roster.Version
}

// joins reports whether the peer is to be added by a change that has not started yet.
func (c *Change) joins(s *step, id election.PeerID) bool {
	w := c.want
	return w != nil && s.roster.Version == w.former.Version && c.driver == nil && !s.roster.Has(id) && w.goal.Has(id)
}

// bringUp sends the present roster to the voters and future voters that have another one.
func (c *Change) bringUp(s *step) {
	former, wanted := c.differing, []election.Voter(nil)
	if c.want != nil {
		wanted = c.want.goal.Voters
	}
	c.differing = nil
	for _, v := range (&election.Roster{Voters: s.roster.All(), Next: wanted}).All() {
		id, p := v.Peer, s.Peer(v.Peer)
		if p == nil || !c.differs(s, id, p) {
			continue
		}
		c.differing = append(c.differing, p)
		if p.differsSince == 0 {
			p.differsSince, p.bringUpAt = s.now, s.now
			if !c.joins(s, id) {
				p.bringUpAt = s.now.Add(c.cfg.Heartbeat) // the present roster may already be on its way
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
	for _, p := range former {
		if !slices.Contains(c.differing, p) {
			p.differsSince = 0
		}
	}
}

// Behind reports whether the peer has lacked the present roster for a lease.
func (c *Change) Behind(now election.Instant, p *Peer) bool {
	return p.differsSince != 0 && now >= p.differsSince.Add(c.cfg.Lease)
}

// joinersReady reports whether all agents to be added have the present roster, or have none.
func (c *Change) joinersReady(s *step) bool {
	return !slices.ContainsFunc(c.want.goal.Voters, func(v election.Voter) bool {
		p := s.Peer(v.Peer)
		return p != nil && c.joins(s, v.Peer) && (c.differs(s, v.Peer, p) || !p.Reported && p.Holds == election.Version{})
	})
}

// behindJoiner is the name of an agent to be added that has lacked the present roster for a lease.
func (c *Change) behindJoiner(s *step) string {
	for _, v := range c.want.goal.Voters {
		if p := s.Peer(v.Peer); p != nil && c.joins(s, v.Peer) && c.Behind(s.now, p) {
			return v.Name
		}
	}
	return ""
}
