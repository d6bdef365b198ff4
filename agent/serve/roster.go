package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// rosterLeases and rosterSlack are how long the server waits for a change of the roster. Old
// leases have to end during the change, and the change outlives a lost driver.
const (
	rosterLeases = 12
	rosterSlack  = 12 * time.Second
)

func (c *Config) rosterTime() time.Duration { return rosterLeases*c.lease() + rosterSlack }

func (s *Server) voters(*http.Request) (any, error) { return s.Picture().voters(s.Clock()), nil }

// voters describes the roster; before there is one, the answer is empty.
func (p *Picture) voters(now election.Instant) api.Voters {
	v := api.Voters{Voters: []api.Voter{}, Next: []api.Voter{}}
	r := p.Status.Roster
	if r == nil {
		return v
	}
	v.Cluster, v.Floor = r.Cluster, uint64(r.Floor)
	v.Version = api.RosterVersion{Driver: uint64(r.Version.Driver), Counter: r.Version.Counter}
	describe := func(voters []election.Voter) []api.Voter {
		out := []api.Voter{}
		for _, voter := range voters {
			out = append(out, api.Voter{Name: voter.Name, ID: string(voter.Peer),
				Connected: voter.Peer == p.Status.Self.Peer || p.Connected[voter.Peer]})
		}
		return out
	}
	v.Voters, v.Next = describe(r.Voters), describe(r.Next)
	if c := p.Status.Change; c != nil {
		v.Change = &api.VotersChange{Driver: p.Names[c.Driver], Committed: c.Committed, GoingBack: c.Back, WaitsFor: append([]string{}, c.Missing...)}
		if c.PromisesEnd != 0 && c.PromisesEnd != election.Never {
			v.Change.PromisesMS = max(0, c.PromisesEnd.Sub(now).Milliseconds())
		}
	}
	return v
}

// changeVoters gives one change to the elector and waits until the new roster
// is confirmed.
func (s *Server) changeVoters(c *call[api.VotersRequest]) (any, error) {
	if c.body.Restore && isForwarded(c.Request) {
		return nil, refusal(api.CodeForbidden, "an agent goes back to its former voters only when it is asked itself: run the command on its host")
	}
	if !s.Picture().Status.Quorum.Enabled {
		return nil, refusal(api.CodeNoQuorum, words.NoVoters)
	}
	change, bad := s.Picture().change(c.body)
	if bad != nil {
		return nil, bad
	}
	return revise(s, c, change, s.voters)
}

// revise gives a change of the roster to the elector, waits until it is done, and returns what
// then is agreed on.
func revise[T any](s *Server, c *call[T], change election.ChangeRoster, agreed func(*http.Request) (any, error)) (any, error) {
	ctx, cancel := context.WithTimeout(c.Context(), s.rosterTime())
	defer cancel()
	reply, err := s.Ask(ctx, func(id election.RequestID) election.Input {
		change.Request = id
		return change
	})
	switch {
	case err != nil:
		return nil, err
	case reply.Refusal != nil:
		return s.reviseElsewhere(c.Request, reply.Refusal, c.body)
	}
	return agreed(c.Request)
}

// change returns the change of a request, with its names resolved.
func (p *Picture) change(request api.VotersRequest) (election.ChangeRoster, *api.ErrorDetail) {
	var c election.ChangeRoster
	name, asked := "", 0
	for _, n := range []string{request.Add, request.Remove, request.Replace} {
		if n != "" {
			name, asked = n, asked+1
		}
	}
	if request.Cancel != request.Restore && asked == 0 {
		return election.ChangeRoster{Cancel: request.Cancel, Restore: request.Restore}, nil
	}
	if request.Cancel || request.Restore || asked != 1 || !election.ValidName(name) {
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: `name one agent, as {"add":"d"}, {"remove":"d"} or {"replace":"d"}; or {"cancel":true}, or {"restore":true}`}
	}
	held, isVoter := p.Status.Roster.Named(name)
	if request.Add != "" && isVoter {
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: name + " is a voter already; if it has a new identity, use replace"}
	}
	if request.Add != "" && p.Status.Roster != nil && len(p.Status.Roster.Voters) >= election.MaxVoters {
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf("there are %d voters, which is the limit: remove one first", election.MaxVoters)}
	}
	if request.Add == "" {
		if !isVoter {
			return c, &api.ErrorDetail{Code: api.CodeNotFound, Message: name + " is not a voter"}
		}
		c.Remove = []election.PeerID{held.Peer}
	}
	if request.Remove == "" {
		peer, live := p.liveNamed(name, held.Peer)
		if !live {
			message := "no live agent is named " + name + ": start it first"
			if request.Replace != "" {
				message = "no live agent named " + name + " has a different identity from the voter: there is nothing to replace it with"
			}
			return c, &api.ErrorDetail{Code: api.CodeNotFound, Message: message}
		}
		c.Add = []election.Voter{{Name: name, Peer: peer}}
	}
	return c, nil
}

// liveNamed returns the live agent that has the name but not the given identity.
func (p *Picture) liveNamed(name string, not election.PeerID) (election.PeerID, bool) {
	for _, m := range p.View.Members {
		if m.Name == name && m.Peer != not && m.Status == membership.Alive {
			return m.Peer, true
		}
	}
	return "", false
}

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
