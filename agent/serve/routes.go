package serve

import (
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/page"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// methods are the handlers of one path. GET answers HEAD too.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := m[r.Method]
	if !ok && r.Method == http.MethodHead {
		h, ok = m[http.MethodGet]
	}
	if ok {
		h(w, r)
		return
	}
	var allowed []string
	for method := range m {
		allowed = append(allowed, method)
		if method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	allowed = slices.Compact(allowed) // HEAD may have its own handler too
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	fail(w, http.StatusMethodNotAllowed, api.ErrorDetail{Code: api.CodeBadRequest,
		Message: clip(r.Method) + " is not allowed for " + clip(r.URL.Path) + "; use " + strings.Join(allowed, ", ")})
}

func get(h http.HandlerFunc) methods { return methods{http.MethodGet: h} }

// post handles a change of the agent or the cluster, for users with the right to make it.
func (s *Server) post(h http.HandlerFunc) methods {
	h = s.entered(h)
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		if s.may(w, r, access.Admin, "") {
			h(w, r)
		}
	}}
}

// postOf handles a change in the election of the path, for users with the right to it there.
func (s *Server) postOf(right access.Right, h http.HandlerFunc) methods {
	if right != access.Campaign { // programs come and go; `doyen campaigns` lists them
		h = s.entered(h)
	}
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		if of, ok := name(w, r); ok && s.may(w, r, right, string(of)) {
			h(w, r)
		}
	}}
}

// orEvery handles with in what names an election, and with every what names all of them.
func orEvery(in, every methods) methods {
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") == api.EveryElection {
			every.ServeHTTP(w, r)
			return
		}
		in.ServeHTTP(w, r)
	}}
}

// postOwn handles a change by any user that the kernel vouches for. The handler itself checks
// to which user the candidacy belongs.
func (s *Server) postOwn(h http.HandlerFunc) methods {
	return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		if _, ok := caller(r); !ok {
			s.may(w, r, access.Admin, "")
			return
		}
		h(w, r)
	}}
}

func (s *Server) getAndPost(read, change http.HandlerFunc) methods {
	m := s.post(change)
	m[http.MethodGet] = read
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
	mux.Handle("/{$}", get(page.Handler(s.shown, s.Logger).ServeHTTP))
	if s.HTTPAPI {
		mux.Handle("/v1/", readOnly(s.socketRoutes(), false, "this listener only answers questions: use the agent's socket on its host"))
	}
	return mux
}

// shown gathers what the status page shows, from one picture.
func (s *Server) shown() page.Facts {
	p := s.Picture()
	f := page.Facts{Agent: s.describe(p), Members: p.Members(), Now: time.Now(),
		Elections: p.Elections(s.Clock(), func(string) uint64 { return 0 })}
	if s.History != nil {
		f.Past = s.History("", page.Past)
	}
	return f
}

// AgentCheck answers HAProxy's agent checks until the server is closed. Of too many connections that
// are silent, the oldest are closed.
func (s *Server) AgentCheck(l net.Listener) {
	page.Check(s.ctx, newPlaces(l, maxChecks, maxChecksOf, 0, addressOf), s.Logger, func(name election.Name) (leads, drained bool) {
		p := s.Picture()
		c, _ := p.contest(name)
		return p.Election(c, s.Clock(), 0).IsLeader, p.Status.Draining
	})
}

// readOnly answers what changes nothing; a watch, which does not end, only if that is wanted.
// Instead says what to do about the rest.
func readOnly(next http.Handler, watches bool, instead string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
		if !reads || !watches && strings.HasSuffix(r.URL.Path, "/watch") && strings.Count(r.URL.Path, "/") > 3 { // an election may have that name
			fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: instead})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func nothingThere(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, api.ErrorDetail{Code: api.CodeNotFound, Message: "this API has nothing at " + clip(r.URL.Path)})
}

// plainPath reports whether the path has its shortest form. http.ServeMux would answer any
// other form with a redirect in HTML, which no caller of this API expects.
func plainPath(p string) bool {
	short := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == short || p == short+"/")
}

func (s *Server) socketRoutes() *http.ServeMux {
	mux, debugging := s.openRoutes(), debugging{&s.Config}
	mux.Handle("/v1/agent", get(s.agent))
	mux.Handle("/v1/agents", get(s.agents))
	mux.Handle("/v1/members", get(s.members))
	mux.Handle("/v1/elections", get(s.elections))
	mux.Handle("/v1/elections/{name}", get(s.election))
	mux.Handle("/v1/elections/{name}/watch", get(s.watching.watch))
	mux.Handle("/v1/elections/{name}/resign", s.postOf(access.HandOver, s.resign))
	mux.Handle("/v1/elections/{name}/transfer", s.postOf(access.HandOver, s.transfer))
	mux.Handle("/v1/elections/{name}/drill", methods{http.MethodGet: s.drills, http.MethodPost: s.drill})
	mux.Handle("/v1/elections/{name}/campaign", orEvery(s.postOf(access.Campaign, s.candidacies.campaign), s.postOwn(s.candidacies.campaign)))
	mux.Handle("/v1/campaigns", get(s.candidacies.campaigns))
	mux.Handle("/v1/campaigns/{id}/resume", s.postOwn(s.candidacies.resume))
	mux.Handle("/v1/campaigns/{id}/stopped", s.postOwn(s.candidacies.stopped))
	mux.Handle("/v1/campaigns/{id}/companion", s.postOwn(s.candidacies.report))
	mux.Handle("/v1/voters", s.getAndPost(s.voters, s.changeVoters))
	mux.Handle("/v1/settings", s.getAndPost(s.settings, s.changeSettings))
	mux.Handle("/v1/elections/{name}/allow", s.post(s.allow))
	mux.Handle("/v1/history", get(s.history))
	mux.Handle("/v1/keys", s.getAndPost(s.keyChanges.keys, s.keyChanges.changeKeys))
	mux.Handle("/v1/drain", s.post(s.drain))
	mux.Handle("/v1/leave", s.post(s.leave))
	mux.Handle("/v1/restart", s.post(s.restart))
	mux.Handle("/v1/reload", s.post(s.reload))
	mux.Handle("/v1/log-level", s.post(debugging.logLevel))
	mux.Handle("/v1/debug/{part}", get(debugging.debug))
	return mux
}
