package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func (s *Server) settings(*http.Request) (any, error) { return s.agreed(s.Picture()), nil }

// lease is the one in use.
func (c *Config) lease() time.Duration { return cmp.Or(c.Picture().Status.Roster.Lease(), c.Lease) }

func (c *Config) agreed(p *Picture) api.Settings {
	r := p.Status.Roster
	out := api.Settings{Algorithm: c.Algorithm, LeaseMS: c.Lease.Milliseconds(), Agreed: r.Follows(), Rights: []api.Right{}}
	if r == nil {
		return out
	}
	if r.Follows() {
		out.Algorithm, out.LeaseMS = r.Settings.Algorithm, r.Settings.Lease.Milliseconds()
	}
	for _, right := range r.Rights {
		names := []string{}
		for _, id := range right.Agents {
			name := string(id)
			if m, ok := p.member(id); ok {
				name = m.Name
			} else if i := slices.IndexFunc(r.All(), func(v election.Voter) bool { return v.Peer == id }); i >= 0 {
				name = r.All()[i].Name
			}
			names = append(names, name)
		}
		slices.Sort(names)
		out.Rights = append(out.Rights, api.Right{Election: string(right.Election), Agents: names, MaxPriority: right.MaxPriority})
	}
	return out
}

func (s *Server) changeSettings(c *call[api.SettingsRequest]) (any, error) {
	switch most := election.MaxLease.Milliseconds(); {
	case c.body == api.SettingsRequest{}:
		return nil, badRequest(`name a setting, as {"lease_ms":2000} or {"algorithm":"ring"}`)
	case c.body.Algorithm != "" && c.body.Algorithm != "bully" && c.body.Algorithm != "ring":
		return nil, badRequest(`"algorithm" must be bully or ring`)
	case c.body.LeaseMS < 0 || c.body.LeaseMS > most:
		return nil, badRequest(fmt.Sprintf(`"lease_ms" must be between 1 and %d`, most))
	}
	lease := time.Duration(c.body.LeaseMS) * time.Millisecond
	return revise(s, c, election.ChangeRoster{Settings: election.Settings{Algorithm: c.body.Algorithm, Lease: lease}}, s.settings)
}

func (s *Server) allow(c *call[api.AllowRequest]) (any, error) {
	if c.body.MaxPriority < 0 || c.body.MaxPriority > election.MaxPriority {
		return nil, badRequest(fmt.Sprintf(`"max_priority" must be between 1 and %d`, election.MaxPriority))
	}
	right := election.Right{Election: c.election, MaxPriority: c.body.MaxPriority}
	p := s.Picture()
	for _, agent := range c.body.Agents {
		id, known := named(p, agent)
		if v, votes := p.Status.Roster.Named(agent); !known && votes {
			id, known = v.Peer, true
		}
		if !known {
			return nil, refusal(api.CodeNotFound, "no agent of the cluster is named "+clip(agent))
		}
		right.Agents = append(right.Agents, id)
	}
	slices.Sort(right.Agents)
	right.Agents = slices.Compact(right.Agents)
	return revise(s, c, election.ChangeRoster{Right: right}, s.settings)
}
