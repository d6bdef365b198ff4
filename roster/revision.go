package roster

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// A roster may carry settings and rights besides the voters. A change of these leaves the voters
// alone (R14).

// Speaks reports whether the peer's version knows all that this agent's roster says. Under the
// same version it would hold another content, so nothing is sent to it or heard of it.
func (c *Change) Speaks(p *Peer) bool {
	if !c.cfg.Quorum {
		return true
	}
	level := max(c.ledger.State().Roster.Level(), c.voter.Roster().Level())
	if d := c.driver; d != nil {
		level = max(level, d.Proposal().Level())
	}
	return p.Level >= level
}

func (c *Change) revised(s *step, in election.ChangeRoster) (*election.Roster, *election.Refusal) {
	r := *s.roster
	if in.Settings != (election.Settings{}) && !r.Follows() { // from now on it names all of them
		r.Settings = c.cfg.Settings()
	}
	r.Settings.Algorithm = cmp.Or(in.Settings.Algorithm, r.Settings.Algorithm)
	r.Settings.Lease = cmp.Or(in.Settings.Lease, r.Settings.Lease)
	if in.Right.Election != "" {
		i, has := slices.BinarySearchFunc(r.Rights, in.Right.Election, func(r election.Right, e election.Name) int {
			return cmp.Compare(r.Election, e)
		})
		r.Rights = slices.Clone(r.Rights)
		if has {
			r.Rights = slices.Delete(r.Rights, i, i+1)
		}
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

// misfit is why the agents can't follow a revised roster; nil: they can. No agent may be connected
// whose version does not know it. While nothing needs its level yet, all voters must be
// connected, since their levels are not known otherwise.
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
