package roster

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// A roster may contain settings and rights besides its voters. A change of settings or rights
// does not change the voters (R14).

// Speaks reports whether the peer's version of Doyen can read all of this agent's roster. If not, the
// peer would store a different roster under the same version number, so the two exchange no messages.
func (c *Change) Speaks(p *Peer) bool { return p.Level >= c.Level() }

// Level is the feature level that a peer needs to read all of this agent's roster, and its words.
func (c *Change) Level() uint64 {
	if !c.cfg.Quorum {
		return 0
	}
	level := max(c.ledger.State().Roster.Level(), c.voter.Roster().Level())
	if d := c.driver; d != nil {
		level = max(level, d.Proposal().Level())
	}
	if c.ledger.State().KeepsWords {
		level = max(level, election.LevelWords)
	}
	return level
}

func (c *Change) revised(s *step, in election.ChangeRoster) (*election.Roster, *election.Refusal) {
	r := *s.roster
	if in.Settings != (election.Settings{}) && !r.Follows() { // from now on the roster sets all settings
		r.Settings = c.cfg.Settings()
	}
	r.Settings.Algorithm = cmp.Or(in.Settings.Algorithm, r.Settings.Algorithm)
	r.Settings.Lease = cmp.Or(in.Settings.Lease, r.Settings.Lease)
	if in.Right.Election != "" {
		i, has := slices.BinarySearchFunc(r.Rights, in.Right.Election, func(r election.Right, e election.Name) int { return cmp.Compare(r.Election, e) })
		r.Rights = slices.DeleteFunc(slices.Clone(r.Rights), func(r election.Right) bool { return r.Election == in.Right.Election })
		switch {
		case len(in.Right.Agents) > 0, in.Right.MaxPriority > 0:
			r.Rights = slices.Insert(r.Rights, i, in.Right)
		case !has:
			return nil, &election.Refusal{Why: election.DeniedNoSuchRight, Election: in.Right.Election}
		}
		if len(r.Rights) > election.MaxRights || election.RightsSize(r.Rights) > election.MaxRightsSize {
			return nil, &election.Refusal{Why: election.DeniedRights, Count: len(r.Rights)}
		}
	}
	return &r, c.misfit(s, &r)
}

// misfit is why the agents can't follow a revised roster; nil if they can. Each connected agent
// needs a version of Doyen that can read it. If the roster raises the level that is needed, all
// voters must be connected: only the levels of connected agents are known.
func (c *Change) misfit(s *step, r *election.Roster) *election.Refusal {
	for _, v := range r.Voters {
		if s.roster.Level() < r.Level() && v.Peer != c.cfg.Self.Peer && s.Peer(v.Peer) == nil {
			return &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
	}
	changes := r.Lease() != s.roster.Lease()
	if changes && !election.Fits(c.given.Heartbeat, r.Lease()) {
		return &election.Refusal{Why: election.DeniedHeartbeat, Agent: c.cfg.Name}
	}
	for _, id := range s.Connected() {
		switch p := s.Peer(id); {
		case p.Level < r.Level():
			return &election.Refusal{Why: election.DeniedOlderVersion, Agent: s.NameOf(id)}
		case changes && !election.Fits(p.Beat, r.Lease()):
			return &election.Refusal{Why: election.DeniedHeartbeat, Agent: s.NameOf(id)}
		}
	}
	return nil
}
