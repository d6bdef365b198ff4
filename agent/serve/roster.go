package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
)

// The server waits rosterLeases leases and rosterSlack for a change of the roster. In that time, old leases
// can end, and if the driver is lost, another one can go on with the change.
const (
	rosterLeases = 12
	rosterSlack  = 12 * time.Second
)

func (c *Config) rosterTime() time.Duration { return rosterLeases*c.lease() + rosterSlack }

func (s *Server) voters(*http.Request) (any, error) { return s.Picture().voters(s.Clock()), nil }

// voters describes the roster. Without a roster, the answer is empty.
func (p *Picture) voters(now election.Instant) api.Voters {
	v := api.Voters{Voters: []api.Voter{}, Next: []api.Voter{}}
	r := p.Status.Roster
	if r == nil {
		return v
	}
	v.Cluster, v.Floor = r.Cluster, uint64(r.Floor)
	v.Version = api.RosterVersion{Driver: uint64(r.Version.Driver), Counter: r.Version.Counter}
	describe := func(voters []election.Voter) []api.Voter {
		return append([]api.Voter{}, each.Of(voters, func(v election.Voter) api.Voter {
			return api.Voter{Name: v.Name, ID: string(v.Peer), Connected: v.Peer == p.Status.Self.Peer || p.Connected[v.Peer]}
		})...)
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

// changeVoters gives one change of the voters to the elector, and waits until the new roster is
// confirmed.
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

// revise gives a change of the roster to the elector, waits until the change is done, and returns what
// agreed then answers. If this agent refuses the change, another voter may make it (reviseElsewhere).
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

// change returns the change that a request asks for, with the IDs of the agents that it names.
func (p *Picture) change(request api.VotersRequest) (election.ChangeRoster, *api.ErrorDetail) {
	var c election.ChangeRoster
	empty := func(name string) bool { return name == "" }
	asked := slices.DeleteFunc([]string{request.Add, request.Remove, request.Replace}, empty)
	name := strings.Join(asked, "") // two names are refused below
	if request.Cancel != request.Restore && len(asked) == 0 {
		return election.ChangeRoster{Cancel: request.Cancel, Restore: request.Restore}, nil
	}
	if request.Cancel || request.Restore || len(asked) != 1 || !election.ValidName(name) || request.ID != "" && request.Remove != "" {
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: `name one agent, as {"add":"d"}, {"remove":"d"} or {"replace":"d"}; or {"cancel":true}, or {"restore":true}; "id" goes with "add" and "replace"`}
	}
	held, isVoter := p.Status.Roster.Named(name)
	switch {
	case request.Add != "" && isVoter:
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: name + " is a voter already; if it has a new identity, use replace"}
	case request.Add != "" && p.Status.Roster != nil && len(p.Status.Roster.Voters) >= election.MaxVoters:
		return c, &api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf("there are %d voters, which is the limit: remove one first", election.MaxVoters)}
	case request.Add == "" && !isVoter:
		return c, &api.ErrorDetail{Code: api.CodeNotFound, Message: name + " is not a voter"}
	case request.Add == "":
		c.Remove = []election.PeerID{held.Peer}
	}
	if request.Remove == "" {
		peer, bad := p.live(name, request.ID, held.Peer)
		if bad != nil && bad.Code == api.CodeNotFound && request.Replace != "" {
			bad.Message += "; the voter " + name + " itself does not count"
		}
		if bad != nil {
			return c, bad
		}
		c.Add = []election.Voter{{Name: name, Peer: peer}}
	}
	return c, nil
}

// live returns the identity of the live agent that has the name, but never the identity in not.
// If an ID is given, the agent must have that ID. Without an ID, no second agent may claim the name:
// any agent that has the cluster key can join under any name.
func (p *Picture) live(name, id string, not election.PeerID) (election.PeerID, *api.ErrorDetail) {
	m, live := each.First(p.View.Members, func(m membership.Member) bool { return m.Name == name && m.Peer != not && m.Status == membership.Alive })
	if !live {
		return "", &api.ErrorDetail{Code: api.CodeNotFound, Message: "no live agent is named " + name + ": start it first"}
	}
	rival, contested := each.First(p.View.Refused, func(r membership.Refusal) bool { return r.Cause == membership.CauseName && r.Name == name })
	switch {
	case id != "" && id != string(m.Peer):
		return "", &api.ErrorDetail{Code: api.CodeNotFound, Message: fmt.Sprintf("the live agent is %s, and not %s", identified(m), clip(id))}
	case id == "" && contested:
		return "", claimed(name, identified(m), "one at "+address(rival.Addr))
	}
	return m.Peer, nil
}

// identified names agents with their IDs, which no other agent can take, and with their addresses.
func identified(all ...membership.Member) string {
	return names(each.Of(all, func(m membership.Member) string {
		return m.Name + " (" + strings.TrimSuffix(string(m.Peer)+" at "+address(m.GossipAddr), " at ") + ")"
	}))
}

func claimed(name, one, other string) *api.ErrorDetail {
	return &api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf(
		"two agents claim the name %s: %s, and %s: stop the one that is not yours, or give the ID of the one that is (--id, in \"id\", or in place of the name)", name, one, other)}
}

// identities returns the IDs of agents that are given by name or by ID. If a voter and another live
// agent have the same name, it refuses that name, and the caller has to give the ID.
func (p *Picture) identities(given []string) (all []election.PeerID, err error) {
	for _, name := range given {
		var bad *api.ErrorDetail
		id := election.PeerID(name)
		if _, isID := p.Names[id]; !isID {
			voter, votes := p.Status.Roster.Named(name)
			switch id, bad = p.live(name, "", ""); {
			case bad != nil && bad.Code == api.CodeNotFound && votes:
				id = voter.Peer
			case bad != nil && bad.Code == api.CodeNotFound:
				return nil, &api.ErrorDetail{Code: api.CodeNotFound, Message: "no live agent and no voter is named " + clip(name) + ", and no agent has this ID"}
			case bad != nil:
				return nil, bad
			case votes && voter.Peer != id:
				return nil, claimed(name, string(id), "the voter "+string(voter.Peer))
			}
		}
		all = append(all, id)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (s *Server) settings(*http.Request) (any, error) { return s.agreed(s.Picture()), nil }

// lease is the lease in use: the roster's, or the configured one if the roster has none.
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
		names, ids := []string{}, []string{}
		for _, id := range right.Agents {
			name := string(id)
			if m, ok := p.member(id); ok {
				name = m.Name
			} else if v, votes := each.First(r.All(), func(v election.Voter) bool { return v.Peer == id }); votes {
				name = v.Name
			}
			names, ids = append(names, name), append(ids, string(id))
		}
		slices.Sort(names)
		out.Rights = append(out.Rights, api.Right{Election: string(right.Election), Agents: names, IDs: ids, MaxPriority: right.MaxPriority})
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
	agents, bad := s.Picture().identities(c.body.Agents)
	if bad != nil {
		return nil, bad
	}
	right := election.Right{Election: c.election, MaxPriority: c.body.MaxPriority, Agents: agents}
	return revise(s, c, election.ChangeRoster{Right: right}, s.settings)
}
