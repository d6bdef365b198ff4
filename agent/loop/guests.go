package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// guest is a connected agent that has proven that it has the cluster key, and has brought what it gossips about
// itself. That counts until gossip shows the agent or the connection ends.
type guest struct {
	membership.Member
	since election.Instant
}

// Admissible returns why an agent may not be a guest although it has the cluster key.
func Admissible(p *serve.Picture, m membership.Member) error {
	other, taken := each.First(p.View.Members, func(o membership.Member) bool { return o.Name == m.Name && o.Peer != m.Peer })
	left := slices.ContainsFunc(p.View.Departed, func(o membership.Member) bool {
		return o.Peer == m.Peer && o.Lineage == m.Lineage && o.Status == membership.Left
	})
	switch {
	case taken && !p.Status.Roster.Has(m.Peer):
		return fmt.Errorf("the agent at %s has the name %q", other.GossipAddr, m.Name)
	case left:
		return errors.New("it has left the cluster")
	}
	return nil
}

// admit makes a connected agent a guest, and reports whether it did. It dismisses one without a valid proof: the
// cluster's keys have changed since the agent came, or this agent has dialled a guest that had restarted.
func (p *peers) admit(now election.Instant, e transport.Connected, g gossip, n network) bool {
	if e.Pass == nil || p.gossiped(e.Peer) == membership.Alive {
		return false
	}
	m, err := g.Introduced(e.Peer, e.Pass.Advert, e.Pass.Proof, e.Pass.Gossip)
	if err != nil {
		n.Dismiss(e.Peer)
		return false
	}
	p.guests[e.Peer] = guest{m, now}
	return true
}

// invite makes the view of gossip's members and the guests. A guest whose name a member has is not in it.
// Unless it votes, it is among the guests to be dismissed, which invite returns.
func (p *peers) invite(voters *election.Roster) (dismissed []election.PeerID) {
	v := p.news
	v.Members, v.Departed = slices.Clone(v.Members), slices.Clone(v.Departed)
	named := map[string]bool{}
	for _, m := range v.Members {
		named[m.Name] = true
		delete(p.guests, m.Peer)
	}
	for _, id := range slices.Sorted(maps.Keys(p.guests)) {
		g := p.guests[id]
		switch {
		case !named[g.Name]:
			v.Members = append(v.Members, g.Member)
			v.Departed = slices.DeleteFunc(v.Departed, func(m membership.Member) bool { return m.Peer == id })
			named[g.Name] = true
		case !voters.Has(id):
			dismissed = append(dismissed, id)
		}
	}
	slices.SortFunc(v.Members, func(a, b membership.Member) int { return cmp.Compare(a.Peer, b.Peer) })
	p.view, p.names = &v, nil
	return dismissed
}
