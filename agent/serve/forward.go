package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// agentTime is how long one agent may take to answer about itself, and forwardSlack how much
// longer an order may take that another agent carries out.
const (
	agentTime    = 2 * time.Second
	forwardSlack = time.Second
)

// Other makes calls of this API at other agents.
type Other interface {
	Call(ctx context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error)
}

// forwardedKey is the key under which a request has the agent that forwarded it.
type forwardedKey struct{}

func isForwarded(r *http.Request) bool { return r.Context().Value(forwardedKey{}) != nil }

// Forwarded carries out a call that another agent forwards. It knows that agent by its
// connection; who called there is only for the log.
func (s *Server) Forwarded(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r, err := http.NewRequestWithContext(context.WithValue(ctx, forwardedKey{}, from), c.Method, "http://d"+c.Path, bytes.NewReader(c.Body))
	if err != nil || !plainPath(r.URL.Path) {
		return election.CallAnswer{Status: http.StatusBadRequest}
	}
	out := recorder{header: http.Header{}, status: http.StatusOK}
	if receive(&out, r) {
		s.forwardRoutes().ServeHTTP(&out, r)
	}
	if c.Method != http.MethodGet {
		s.Logger.Info("carried out for another agent", "call", clip(c.Method+" "+c.Path), "agent", s.Picture().name(from), "caller", clip(c.Caller), "status", out.status)
	}
	if out.body.Len() > election.MaxCallBody {
		return election.CallAnswer{Status: http.StatusServiceUnavailable}
	}
	return election.CallAnswer{Status: uint64(out.status), Body: out.body.Bytes()}
}

// forwardRoutes are what other agents may ask for. Changes are accepted only from voters: any
// holder of the cluster key can be an agent, but operators chose the voters.
func (s *Server) forwardRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/v1/agents", get(s.agents))
	mux.Handle("/v1/elections/{name}/resign", s.fromVoters(s.resign))
	mux.Handle("/v1/elections/{name}/transfer", s.fromVoters(s.transfer))
	mux.Handle("/v1/drain", s.fromVoters(s.drain))
	mux.HandleFunc("/", nothingThere)
	return mux
}

func (s *Server) fromVoters(h http.HandlerFunc) methods {
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		from, _ := r.Context().Value(forwardedKey{}).(election.PeerID)
		p := s.Picture()
		if !p.Status.Roster.Has(from) {
			fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: "changes are accepted only from agents that are voters, and " +
				p.name(from) + " is not one: run the command on the host of a voter"})
			return
		}
		h(w, r)
	}}
}

// leaderElsewhere returns the leader of an election, if a call about it should be carried out
// there.
func (s *Server) leaderElsewhere(r *http.Request, name election.Name) (election.PeerID, bool) {
	p := s.Picture()
	c, _ := p.contest(name)
	leader, ok := c.LeaderAt(s.Clock())
	return leader.Peer, ok && leader.Peer != s.Self.Peer && s.mayForward(r)
}

func (s *Server) mayForward(r *http.Request) bool {
	return s.Other != nil && !isForwarded(r) && s.Picture().Status.Roster.Has(s.Self.Peer)
}

// forward has an order carried out by another agent, and answers with its outcome.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, to election.PeerID, request any) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*s.Lease+outcomeSlack+forwardSlack)
	defer cancel()
	name := s.Picture().name(to)
	text, err := json.Marshal(request)
	var a election.CallAnswer
	if err == nil {
		a, err = s.Other.Call(ctx, to, election.Call{Method: r.Method, Path: r.URL.Path, Body: text, Caller: callerWords(r)})
	}
	if err != nil {
		fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeUnavailable, Message: "agent " + name + " has to do this: " + err.Error() + "; run the command on " + name})
		return
	}
	var outcome api.Outcome
	var failed api.Error
	switch {
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &outcome) == nil:
		if outcome.Message != "" {
			outcome.Message = "agent " + name + ": " + outcome.Message
		}
		answer(w, outcome)
	case json.Unmarshal(a.Body, &failed) == nil && failed.Err.Code != "":
		failed.Err.Message = "agent " + name + ": " + failed.Err.Message
		fail(w, int(a.Status), failed.Err)
	default:
		fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeUnavailable, Message: "agent " + name + " is too busy to do this: try again"})
	}
}

// callerWords names the caller for another agent's log.
func callerWords(r *http.Request) string {
	if p, ok := caller(r); ok {
		return "user " + userName(p.UID)
	}
	return ""
}

// agents answers about every agent, each asked for itself. To another agent it answers only
// about this one.
func (s *Server) agents(w http.ResponseWriter, r *http.Request) {
	all := []api.AgentReport{s.reportOwn(r.Context())}
	if !isForwarded(r) {
		all = append(all, s.reportOthers(r.Context())...)
		slices.SortFunc(all, func(a, b api.AgentReport) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	}
	answer(w, api.Agents{Agents: all})
}

// reportOwn describes this agent. Its lag is how long its loop takes to answer.
func (s *Server) reportOwn(ctx context.Context) api.AgentReport {
	p := s.Picture()
	own := api.AgentReport{Name: s.Name, ID: string(s.Self.Peer), Version: s.Version, Draining: p.Status.Draining,
		Warnings: append([]api.Warning{}, p.Warnings...), Keys: []api.Key{}, Reached: true}
	if s.Keyring != nil {
		own.Keys = s.Keyring.Keys()
	}
	began := s.Clock()
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	_ = s.Ping(ctx) // one that does not answer lags by the whole time
	own.LagMS = roundUp(s.Clock().Sub(began))
	return own
}

func (s *Server) reportOthers(ctx context.Context) []api.AgentReport {
	p := s.Picture()
	others := slices.DeleteFunc(slices.Clone(p.View.Members), func(m membership.Member) bool { return m.Peer == s.Self.Peer })
	reports := make([]api.AgentReport, len(others))
	var asking sync.WaitGroup
	for i, m := range others {
		reports[i] = api.AgentReport{Name: m.Name, ID: string(m.Peer), Version: m.Version, Draining: m.Draining, Warnings: []api.Warning{}, Keys: []api.Key{}}
		if s.Other == nil {
			continue
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, agentTime+forwardSlack)
			defer cancel()
			a, err := s.Other.Call(ctx, m.Peer, election.Call{Method: http.MethodGet, Path: "/v1/agents"})
			var its api.Agents
			if err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &its) == nil && len(its.Agents) == 1 {
				its.Agents[0].Name, its.Agents[0].ID = m.Name, string(m.Peer) // as the connection proves
				reports[i] = its.Agents[0]
			}
		})
	}
	asking.Wait()
	return reports
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
