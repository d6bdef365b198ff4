package serve

import (
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

// asks answers a question that changes nothing.
func asks(about func(*http.Request) (any, error)) methods {
	return get(func(w http.ResponseWriter, r *http.Request) {
		body, err := about(r)
		reply(w, body, err)
	})
}

// votersAsk is asks, but of other agents only voters may ask.
func (s *Server) votersAsk(about func(*http.Request) (any, error)) methods {
	return asks(func(r *http.Request) (any, error) {
		if err := s.fromVoter(r); err != nil {
			return nil, err
		}
		return about(r)
	})
}

// call is a request for a change: of the election that its path names, if there is one.
type call[T any] struct {
	*http.Request
	w        http.ResponseWriter
	election election.Name
	body     T
	then     func() // once the last answer on the connection is sent; nil: others may follow
}

// anybody is the right of every user that the kernel vouches for. The handler itself checks whose it is
// to change that, and the name of the election.
const anybody access.Right = ""

// order handles a request for a change, in this order: the election of its path has a valid name, its
// caller has the right to it, it is entered in the log and the history, and its body is decoded.
// What do returns is the answer; nil: it has answered.
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
		text, _ := io.ReadAll(r.Body)                     // in memory already, see receive
		if right != anybody && right != access.Campaign { // programs come and go; `doyen campaigns` lists them
			s.entered(r, text)
		}
		if err := decode(text, &c.body); err != nil {
			refuse(w, err)
			return
		}
		body, err := do(c)
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

// reply answers with the body, unless there is an error; nil: the handler has answered.
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
func (s *Server) openRoutes() *http.ServeMux {
	mux, probes := http.NewServeMux(), probes{&s.Config}
	mux.Handle("/leader", methods{http.MethodGet: probes.leads, http.MethodHead: probes.leads, http.MethodOptions: probes.leads})
	mux.Handle("/livez", get(probes.livez))
	mux.Handle("/readyz", get(probes.readyz))
	mux.Handle("/metrics", get(s.Metrics.ServeHTTP))
	mux.HandleFunc("/", nothingThere)
	return mux
}

// pageRoutes are the routes of the TCP listener, where a person may look at a page.
func (s *Server) pageRoutes() *http.ServeMux {
	mux := s.openRoutes()
	mux.Handle("/{$}", get(page.Handler(s.shown).ServeHTTP))
	if s.HTTPAPI {
		mux.Handle("/v1/", readOnly(s.socketRoutes(), false, "this listener only answers questions: use the agent's socket on its host"))
	}
	return mux
}

// shown gathers what the status page shows, from one picture.
func (s *Server) shown() page.Facts {
	p := s.Picture()
	return page.Facts{Agent: s.describe(p), Members: p.Members(), Now: time.Now(), Past: s.History("", page.Past),
		Elections: p.Elections(s.Clock(), func(string) uint64 { return 0 })}
}

// AgentCheck answers HAProxy's agent checks until the server is closed. Of too many connections that
// are silent, the oldest are closed.
func (s *Server) AgentCheck(l net.Listener) {
	page.Check(s.ctx, socket.NewPlaces(l, maxChecks, maxChecksOf, 0, socket.AddressOf), s.Logger, func(name election.Name) (leads, drained bool) {
		return s.seen(name).IsLeader, s.Picture().Status.Draining
	})
}

// readOnly answers what changes nothing; a watch, which does not end, only if that is wanted.
// Instead says what to do about the rest.
func readOnly(next http.Handler, watches bool, instead string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
		if !reads || !watches && strings.HasSuffix(r.URL.Path, "/watch") && strings.Count(r.URL.Path, "/") > 3 { // an election may have that name
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
	mux, debugging := s.openRoutes(), debugging{&s.Config}
	mux.Handle("/v1/agent", asks(s.agent))
	mux.Handle("/v1/members", asks(s.members))
	mux.Handle("/v1/elections", asks(s.elections))
	mux.Handle("/v1/elections/{name}", asks(s.election))
	mux.Handle("/v1/elections/{name}/watch", get(s.watching.watch))
	mux.Handle("/v1/elections/{name}/campaign", order(s, anybody, s.candidacies.campaign))
	mux.Handle("/v1/campaigns", asks(s.candidacies.campaigns))
	mux.Handle("/v1/campaigns/{id}/resume", order(s, anybody, s.candidacies.resume))
	mux.Handle("/v1/campaigns/{id}/stopped", order(s, anybody, s.candidacies.receipt))
	mux.Handle("/v1/campaigns/{id}/companion", order(s, anybody, s.candidacies.report))
	mux.Handle("/v1/history", asks(s.history))
	mux.Handle("/v1/leave", order(s, access.Admin, s.leave))
	mux.Handle("/v1/restart", order(s, access.Admin, s.restart))
	mux.Handle("/v1/reload", order(s, access.Admin, s.reload))
	mux.Handle("/v1/log-level", order(s, access.Admin, debugging.logLevel))
	mux.Handle("/v1/debug/{part}", get(debugging.debug))
	return s.sharedRoutes(mux)
}

// forwardRoutes are what other agents may ask for. Any holder of the cluster key can be an agent, but
// operators chose the voters: only they may ask for more than what the first of these answers.
func (s *Server) forwardRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", nothingThere)
	return s.sharedRoutes(mux)
}

// sharedRoutes adds what an agent can also have another one do.
func (s *Server) sharedRoutes(mux *http.ServeMux) *http.ServeMux {
	mux.Handle("/v1/agents", asks(s.agents))
	mux.Handle("/v1/elections/{name}/resign", order(s, access.HandOver, s.resign))
	mux.Handle("/v1/elections/{name}/transfer", order(s, access.HandOver, s.transfer))
	mux.Handle("/v1/elections/{name}/allow", order(s, access.Admin, s.allow))
	mux.Handle("/v1/elections/{name}/drill", s.votersAsk(s.drills).or(order(s, anybody, s.drill)))
	mux.Handle("/v1/drain", order(s, access.Admin, s.drain))
	mux.Handle("/v1/voters", s.votersAsk(s.voters).or(order(s, access.Admin, s.changeVoters)))
	mux.Handle("/v1/settings", s.votersAsk(s.settings).or(order(s, access.Admin, s.changeSettings)))
	mux.Handle("/v1/keys", s.votersAsk(s.keyChanges.keys).or(order(s, access.Admin, s.keyChanges.changeKeys))) // its keys show whether a change will be accepted
	return mux
}
