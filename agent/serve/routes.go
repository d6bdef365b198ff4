package serve

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/page"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// methods are the handlers of one path. GET answers HEAD too.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead && m[method] == nil {
		method = http.MethodGet
	}
	if h := m[method]; h != nil {
		h(w, r)
		return
	}
	allowed := slices.Collect(maps.Keys(m))
	if m[http.MethodGet] != nil && m[http.MethodHead] == nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	write(w, http.StatusMethodNotAllowed, api.Error{Err: api.ErrorDetail{Code: api.CodeBadRequest,
		Message: clip(r.Method) + " is not allowed for " + clip(r.URL.Path) + "; use " + strings.Join(allowed, ", ")}})
}

func get(h http.HandlerFunc) methods { return methods{http.MethodGet: h} }

// asks handles a question that changes nothing: about returns the answer.
func asks(about func(*http.Request) (any, error)) methods {
	return get(func(w http.ResponseWriter, r *http.Request) {
		body, err := about(r)
		reply(w, body, err)
	})
}

// votersAsk is asks, but refuses a call from another agent unless that agent is a voter.
func (s *Server) votersAsk(about func(*http.Request) (any, error)) methods {
	return asks(func(r *http.Request) (any, error) {
		if err := s.fromVoter(r); err != nil {
			return nil, err
		}
		return about(r)
	})
}

// call is a request for a change. If its path names an election, the change is of that election.
type call[T any] struct {
	*http.Request
	w        http.ResponseWriter
	election election.Name
	body     T
	then     func() // runs after the answer, and the connection is then closed; nil: the connection stays open
}

// anybody is the right of every user that the kernel names. The handler itself checks whether
// what is to be changed belongs to that user, and whether the election's name is valid.
const anybody access.Right = ""

// order handles a request for a change. It checks the name of the election in the path and the caller's
// right, decodes the body, and has do carry out the change. It enters an operator's change, unless refused,
// in the log and the history. do returns the answer; nil: do has answered already.
func order[T any](s *Server, right access.Right, do func(*call[T]) (any, error)) methods {
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		began := s.Clock()
		c := &call[T]{Request: r, w: w, election: election.Name(r.PathValue("name"))}
		var err error
		if c.election != "" && right != anybody {
			_, err = name(r)
		}
		if err == nil {
			err = s.may(r, right, string(c.election))
		}
		if err != nil {
			refuse(w, err)
			return
		}
		text, _ := io.ReadAll(r.Body) // the body is in memory already, see receive
		var entry api.Transition
		if right != anybody && right != access.Campaign { // the calls of programs are not entered: `doyen campaigns` lists programs
			values := map[string]any{}
			_ = json.Unmarshal(text, &values) // an error is reported by decode below
			entry = s.entry(r, right, values)
		}
		if err := decode(text, &c.body); err != nil {
			refuse(w, err)
			return
		}
		body, err := do(c)
		s.entered(entry, err)
		if outcome, ok := body.(*api.Outcome); ok {
			outcome.Waited = s.Clock().Sub(began).Milliseconds()
		}
		if c.then != nil {
			w.Header().Set("Connection", "close")
		}
		if reply(w, body, err); c.then != nil {
			_ = http.NewResponseController(w).Flush()
			c.then()
		}
	}}
}

// reply answers with the error, or else with the body. Without both, the handler has answered already.
func reply(w http.ResponseWriter, body any, err error) {
	switch {
	case err != nil:
		refuse(w, err)
	case body != nil:
		write(w, http.StatusOK, body)
	}
}

func (m methods) or(others methods) methods {
	maps.Copy(m, others)
	return m
}

// openRoutes are open to everybody, on any listener.
func (s *Server) openRoutes(metrics http.Handler) *http.ServeMux {
	mux, probes := http.NewServeMux(), probes{&s.Config}
	mux.Handle("/leader", methods{http.MethodGet: probes.leads, http.MethodHead: probes.leads, http.MethodOptions: probes.leads})
	mux.Handle("/livez", get(probes.livez))
	mux.Handle("/readyz", get(probes.readyz))
	mux.Handle("/metrics", get(metrics.ServeHTTP))
	mux.HandleFunc("/", nothingThere)
	return mux
}

// pageRoutes are the routes of the TCP listener, where a person may look at a page.
func (s *Server) pageRoutes() *http.ServeMux {
	mux := s.openRoutes(s.kept(s.Metrics))
	mux.Handle("/{$}", get(s.kept(page.Handler(s.shown)).ServeHTTP))
	if s.HTTPAPI {
		mux.Handle("/v1/", readOnly(s.socketRoutes(), false, "this listener only answers questions: use the agent's socket on its host"))
	}
	return mux
}

// shown gathers what the status page shows, from one picture.
func (s *Server) shown() page.Facts {
	p := s.Picture()
	missing := election.Names(p.Status.Roster.All(), func(v election.Voter) bool { return v.Peer != s.Self.Peer && !p.Connected[v.Peer] })
	slices.Sort(missing)
	return page.Facts{Agent: s.describe(p), Members: p.Members(), Jobs: p.Jobs, Missing: missing, Now: time.Now(), Past: s.History("", page.Past),
		Elections: p.Elections(s.Clock(), func(string) uint64 { return 0 }), Others: s.reports.newest(s.ctx, s.others)}
}

// AgentCheck answers HAProxy's agent checks until the server is closed. If too many connections
// are open, a new one replaces an older one (see socket.Places).
func (s *Server) AgentCheck(l net.Listener) {
	page.Check(s.ctx, socket.NewPlaces(l, maxChecks, maxChecksOf, 0, socket.AddressOf), s.Logger, func(name election.Name) (leads, drained bool) {
		return s.seen(name).IsLeader, s.Picture().Status.Draining
	})
}

// readOnly passes on requests that change nothing. A watch, which does not end, is passed on
// only if watches is true. Any other request is refused, with the text in instead.
func readOnly(next http.Handler, watches bool, instead string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
		if !reads || !watches && strings.HasSuffix(r.URL.Path, "/watch") && strings.Count(r.URL.Path, "/") > 3 { // an election may be named watch: its path then has only three slashes
			refuse(w, refusal(api.CodeForbidden, instead))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func nothingThere(w http.ResponseWriter, r *http.Request) {
	refuse(w, refusal(api.CodeNotFound, "this API has nothing at "+clip(r.URL.Path)))
}

// plainPath reports whether the path has its shortest form. http.ServeMux would answer any
// other form with a redirect in HTML, which no caller of this API expects.
func plainPath(p string) bool {
	short := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == short || p == short+"/")
}

func (s *Server) socketRoutes() *http.ServeMux {
	mux, debugging, costly := s.openRoutes(s.costs.costly(s.Metrics)), debugging{&s.Config}, s.costs.costly
	mux.Handle("/v1/agent", asks(s.agent))
	mux.Handle("/v1/members", costly(asks(s.members)))
	mux.HandleFunc("/v1/elections", func(w http.ResponseWriter, r *http.Request) {
		elections := http.Handler(asks(s.elections))
		if quorum, _ := consistency(r); !quorum { // a quorum read waits for the voters, and is about few elections
			elections = costly(elections)
		}
		elections.ServeHTTP(w, r)
	})
	mux.Handle("/v1/elections/{name}", asks(s.election))
	mux.Handle("/v1/elections/{name}/watch", get(s.watching.watch))
	mux.Handle("/v1/elections/{name}/campaign", order(s, anybody, s.candidacies.campaign))
	mux.Handle("/v1/campaigns", costly(asks(s.candidacies.campaigns)))
	mux.Handle("/v1/campaigns/{id}/resume", order(s, anybody, s.candidacies.resume))
	mux.Handle("/v1/campaigns/{id}/stopped", order(s, anybody, s.candidacies.receipt))
	mux.Handle("/v1/campaigns/{id}/companion", order(s, anybody, s.candidacies.report))
	mux.Handle("/v1/campaigns/{id}/word", order(s, anybody, wordCalls{s}.replace))
	mux.Handle("/v1/history", costly(asks(s.history)))
	mux.Handle("/v1/leave", order(s, access.Admin, s.leave))
	mux.Handle("/v1/restart", order(s, access.Admin, s.restart))
	mux.Handle("/v1/reload", order(s, access.Admin, s.reload))
	mux.Handle("/v1/log-level", order(s, access.Admin, debugging.logLevel))
	mux.Handle("/v1/debug/{part}", get(debugging.debug))
	return s.sharedRoutes(mux)
}

// forwardRoutes are the calls of other agents. Anyone who has the cluster key can run an agent, but operators
// chose the voters. So only voters may ask for changes (may), and for what votersAsk handles.
func (s *Server) forwardRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", nothingThere)
	mux.Handle(wordsPath+"/{name}", asks(wordCalls{s}.answerVoter))
	return s.sharedRoutes(mux)
}

// sharedRoutes adds the calls that programs of this host may make, and that other agents may forward.
func (s *Server) sharedRoutes(mux *http.ServeMux) *http.ServeMux {
	mux.Handle("/v1/agents", asks(s.agents))
	mux.Handle("/v1/jobs", s.costs.costly(asks(wordCalls{s}.jobs)))
	mux.Handle("/v1/elections/{name}/word", asks(wordCalls{s}.read))
	mux.Handle("/v1/elections/{name}/resign", order(s, access.HandOver, s.resign))
	mux.Handle("/v1/elections/{name}/transfer", order(s, access.HandOver, s.transfer))
	mux.Handle("/v1/elections/{name}/allow", order(s, access.Admin, s.allow))
	mux.Handle("/v1/elections/{name}/drill", s.votersAsk(s.drills).or(order(s, anybody, s.drill)))
	mux.Handle("/v1/drain", order(s, access.Admin, s.drain))
	mux.Handle("/v1/voters", s.votersAsk(s.voters).or(order(s, access.Admin, s.changeVoters)))
	mux.Handle("/v1/settings", s.votersAsk(s.settings).or(order(s, access.Admin, s.changeSettings)))
	mux.Handle("/v1/keys", s.votersAsk(s.keyChanges.keys).or(order(s, access.Admin, s.keyChanges.changeKeys))) // a rotation first reads the keys of each agent, to see whether that agent would accept a change
	return mux
}
