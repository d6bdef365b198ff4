package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/words"
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

// forwarded is who a request comes from: an agent, known by its connection, and in that agent's
// words the process that called there.
type forwarded struct {
	from   election.PeerID
	caller string
}

// passedBy returns the agent that forwarded the request, if one did.
func passedBy(r *http.Request) (election.PeerID, bool) {
	f, ok := r.Context().Value(forwardedKey{}).(forwarded)
	return f.from, ok
}

func isForwarded(r *http.Request) bool {
	_, passed := passedBy(r)
	return passed
}

// Forwarded carries out a call that another agent forwards. It knows that agent by its
// connection; who called there is only for the log.
func (s *Server) Forwarded(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r, err := http.NewRequestWithContext(context.WithValue(ctx, forwardedKey{}, forwarded{from, c.Caller}), c.Method, "http://d"+c.Path, bytes.NewReader(c.Body))
	if err != nil || !plainPath(r.URL.Path) {
		return election.CallAnswer{Status: http.StatusBadRequest}
	}
	out := recorder{header: http.Header{}, status: http.StatusOK}
	if receive(&out, r) {
		s.forwarding.ServeHTTP(&out, r)
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
	mux.Handle("/v1/elections/{name}/allow", s.fromVoters(s.allow))
	mux.Handle("/v1/elections/{name}/drill", methods{http.MethodGet: s.voterOnly(s.drills), http.MethodPost: s.voterOnly(s.drill)})
	mux.Handle("/v1/drain", s.fromVoters(s.drain))
	mux.Handle("/v1/voters", s.fromVoters(s.changeVoters))
	mux.Handle("/v1/settings", s.fromVoters(s.changeSettings))
	keys := s.fromVoters(s.keyChanges.changeKeys)
	keys[http.MethodGet] = s.voterOnly(s.keyChanges.keys) // shows beforehand whether a change will be accepted
	mux.Handle("/v1/keys", keys)
	mux.HandleFunc("/", nothingThere)
	return mux
}

func (s *Server) fromVoters(h http.HandlerFunc) methods {
	return methods{http.MethodPost: s.voterOnly(s.entered(h))}
}

func (s *Server) voterOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, _ := passedBy(r)
		p := s.Picture()
		if !p.Status.Roster.Has(from) {
			fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: "changes are accepted only from agents that are voters, and " +
				p.name(from) + " is not one: run the command on the host of a voter"})
			return
		}
		h(w, r)
	}
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
	limit := 2*s.lease() + outcomeSlack + forwardSlack
	if _, drill := request.(api.DrillRequest); drill {
		limit += tryTime
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	name := s.Picture().name(to)
	a, err := s.pass(ctx, r, to, request)
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

// pass makes the call of a request at another agent.
func (s *Server) pass(ctx context.Context, r *http.Request, to election.PeerID, request any) (election.CallAnswer, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return election.CallAnswer{}, err
	}
	return s.Other.Call(ctx, to, election.Call{Method: r.Method, Path: r.URL.Path, Body: text, Caller: callerWords(r)})
}

// unable are the refusals of an agent that can't change the roster, though another voter may.
var unable = []election.Denial{election.DeniedBarred, election.DeniedNoMajority, election.DeniedNotConnected}

// unchanged are the codes of refusals after which nothing was changed, and another voter may be
// able to do it.
var unchanged = []string{api.CodeNotFound, api.CodeNoQuorum, api.CodeForbidden, api.CodeNotVoter}

// revised reports a change of the roster that this agent refused. If another voter may be able to
// make it, the voters are asked, one after another, until one does or refuses for good.
func (s *Server) revised(w http.ResponseWriter, r *http.Request, refused *election.Refusal, request, answered any) {
	own := words.Refusal(refused)
	v, cancels := request.(api.VotersRequest)
	cancels = cancels && v.Cancel && refused.Why == election.DeniedNoChange // perhaps one that waits at another agent
	if !cancels && !slices.Contains(unable, refused.Why) || v.Restore || !s.mayForward(r) {
		refuse(w, own)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.rosterTime()+forwardSlack)
	defer cancel()
	p := s.Picture()
	for _, voter := range p.Status.Roster.All() {
		if !p.Connected[voter.Peer] {
			continue
		}
		a, err := s.pass(ctx, r, voter.Peer, request)
		var failed api.Error
		switch {
		case errors.Is(err, forward.ErrNotSent):
			continue
		case err != nil:
			fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeUnavailable, Message: own.Message +
				"; agent " + voter.Name + " was asked to do it, and may have done it: " + err.Error()})
			return
		case a.Status == http.StatusOK && json.Unmarshal(a.Body, answered) == nil:
			answer(w, answered)
			return
		case json.Unmarshal(a.Body, &failed) != nil || failed.Err.Code == "":
			continue // it is too busy
		}
		same := failed.Err.Message == words.Refusal(refused).Message
		failed.Err.Message = "agent " + voter.Name + ": " + failed.Err.Message
		if !slices.Contains(unchanged, failed.Err.Code) {
			fail(w, int(a.Status), failed.Err)
			return
		}
		if !same {
			own.Message += "; " + failed.Err.Message
		}
	}
	refuse(w, own)
}

// callerWords describes the caller for another agent's log and history; see callerOf.
func callerWords(r *http.Request) string {
	p, ok := caller(r)
	if !ok {
		return ""
	}
	return clip(fmt.Sprintf("user %s (uid %d, pid %d, %s", access.UserName(p.UID), p.UID, p.PID, processName(p.PID))) + ")"
}

// callerOf reads the words of callerWords. They are another agent's, and nothing is granted for
// them: one of an older version does not send the numbers.
func callerOf(text, host string) *api.Caller {
	by := &api.Caller{UID: math.MaxUint32, User: clip(cmp.Or(strings.TrimPrefix(text, "user "), "unknown")), Host: host}
	var user string
	var uid uint32
	var pid int32
	if _, err := fmt.Sscanf(text, "user %s (uid %d, pid %d,", &user, &uid, &pid); err != nil {
		return by
	}
	_, rest, _ := strings.Cut(text, ", pid ")
	_, command, _ := strings.Cut(rest, ", ")
	by.User, by.UID, by.PID, by.Command = clip(user), uid, pid, clip(strings.TrimSuffix(command, ")"))
	return by
}

// agents answers about every agent, each asked for itself. To another agent it answers only
// about this one.
func (s *Server) agents(w http.ResponseWriter, r *http.Request) {
	if !isForwarded(r) && !s.mayAsk(w, r, 1) {
		return
	}
	all := []api.AgentReport{s.others.reportOwn(r.Context())}
	back := r.URL.RawQuery == dialBack
	if from, ok := passedBy(r); ok && back {
		all[0].Dials = s.others.dials(r.Context(), from)
	}
	if !isForwarded(r) {
		var pinging sync.WaitGroup
		if back {
			pinging.Go(func() { all[0].Dials = s.others.pingAll() })
		}
		others := s.others.reportOthers(r.Context(), back)
		pinging.Wait()
		all = append(all, others...)
		slices.SortFunc(all, func(a, b api.AgentReport) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	}
	answer(w, api.Agents{Agents: all})
}

// others asks the other agents, and answers them about this one.
type others struct{ *Config }

// reportOwn describes this agent. Its lag is how long its loop takes to answer.
func (o others) reportOwn(ctx context.Context) api.AgentReport {
	p := o.Picture()
	own := api.AgentReport{Name: o.Name, ID: string(o.Self.Peer), Version: o.Version, Draining: p.Status.Draining,
		Warnings: append([]api.Warning{}, p.Warnings...), Keys: []api.Key{}, Reached: true}
	if o.Keyring != nil {
		own.Keys = o.Keyring.Keys()
	}
	began := o.Clock()
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	_ = o.Ping(ctx) // one that does not answer lags by the whole time
	own.LagMS = roundUp(o.Clock().Sub(began))
	return own
}

func (o others) reportOthers(ctx context.Context, back bool) []api.AgentReport {
	path := "/v1/agents"
	if back {
		path += "?" + dialBack
	}
	var reports []api.AgentReport
	o.askOthers(ctx, election.Call{Method: http.MethodGet, Path: path}, func(m membership.Member, a *election.CallAnswer) {
		report := api.AgentReport{Version: m.Version, Draining: m.Draining, Warnings: []api.Warning{}, Keys: []api.Key{}}
		var its api.Agents
		if a != nil && json.Unmarshal(a.Body, &its) == nil && len(its.Agents) == 1 {
			report = its.Agents[0]
		}
		report.Name, report.ID = m.Name, string(m.Peer) // as the connection proves
		reports = append(reports, report)
	})
	return reports
}

// askOthers makes a call at all other agents that are known. take is called once for each of them,
// one after another, with the answer; nil: it answered with an error, or not at all.
func (o others) askOthers(ctx context.Context, c election.Call, take func(membership.Member, *election.CallAnswer)) {
	p := o.Picture()
	var asking sync.WaitGroup
	var taking sync.Mutex
	for _, m := range append(slices.Clone(p.View.Members), p.absent()...) {
		if m.Peer == o.Self.Peer {
			continue
		}
		asking.Go(func() {
			var answered *election.CallAnswer
			if o.Other != nil {
				ctx, cancel := context.WithTimeout(ctx, agentTime+forwardSlack)
				defer cancel()
				if a, err := o.Other.Call(ctx, m.Peer, c); err == nil && a.Status == http.StatusOK {
					answered = &a
				}
			}
			taking.Lock()
			defer taking.Unlock()
			take(m, answered)
		})
	}
	asking.Wait()
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
