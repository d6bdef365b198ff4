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

func (s *Server) settings(w http.ResponseWriter, _ *http.Request) { answer(w, s.agreed(s.Picture())) }

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

func (s *Server) changeSettings(w http.ResponseWriter, r *http.Request) {
	var request api.SettingsRequest
	if !body(w, r, &request) {
		return
	}
	lease := time.Duration(request.LeaseMS) * time.Millisecond
	bad := ""
	switch {
	case request == api.SettingsRequest{}:
		bad = `name a setting, as {"lease_ms":2000} or {"algorithm":"ring"}`
	case request.Algorithm != "" && request.Algorithm != "bully" && request.Algorithm != "ring":
		bad = `"algorithm" must be bully or ring`
	case request.LeaseMS < 0 || request.LeaseMS > election.MaxLease.Milliseconds():
		bad = fmt.Sprintf(`"lease_ms" must be between 1 and %d`, election.MaxLease.Milliseconds())
	}
	if bad != "" {
		badRequest(w, bad)
		return
	}
	revise(s, w, r, request, election.ChangeRoster{Settings: election.Settings{Algorithm: request.Algorithm, Lease: lease}}, s.agreed)
}

func (s *Server) allow(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	var request api.AllowRequest
	if !ok || !body(w, r, &request) {
		return
	}
	if request.MaxPriority < 0 || request.MaxPriority > election.MaxPriority {
		badRequest(w, fmt.Sprintf(`"max_priority" must be between 1 and %d`, election.MaxPriority))
		return
	}
	right := election.Right{Election: name, MaxPriority: request.MaxPriority}
	p := s.Picture()
	for _, agent := range request.Agents {
		id, known := named(p, agent)
		if v, votes := p.Status.Roster.Named(agent); !known && votes {
			id, known = v.Peer, true
		}
		if !known {
			fail(w, http.StatusNotFound, api.ErrorDetail{Code: api.CodeNotFound, Message: "no agent of the cluster is named " + clip(agent)})
			return
		}
		right.Agents = append(right.Agents, id)
	}
	slices.Sort(right.Agents)
	right.Agents = slices.Compact(right.Agents)
	revise(s, w, r, request, election.ChangeRoster{Right: right}, s.agreed)
}
