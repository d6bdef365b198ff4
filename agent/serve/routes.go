package serve

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
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
	fail(w, http.StatusMethodNotAllowed, api.ErrorDetail{
		Code: api.CodeBadRequest, Message: clip(r.Method) + " is not allowed for " + clip(r.URL.Path) + "; use " + strings.Join(allowed, ", "),
	})
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
	mux := http.NewServeMux()
	mux.Handle("/leader", methods{http.MethodGet: s.leads, http.MethodHead: s.leads, http.MethodOptions: s.leads})
	mux.Handle("/livez", get(s.livez))
	mux.Handle("/readyz", get(s.readyz))
	mux.Handle("/metrics", get(s.Metrics.ServeHTTP))
	mux.HandleFunc("/", nothingThere)
	return mux
}

// pageRoutes are the routes of the TCP listener, where a person may look at a page.
func (s *Server) pageRoutes() *http.ServeMux {
	mux := s.openRoutes()
	mux.Handle("/{$}", get(s.status))
	if s.HTTPAPI {
		mux.Handle("/v1/", readOnly(s.socketRoutes(), false, "this listener only answers questions: use the agent's socket on its host"))
	}
	return mux
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
	mux := s.openRoutes()
	mux.Handle("/v1/agent", get(s.agent))
	mux.Handle("/v1/agents", get(s.agents))
	mux.Handle("/v1/members", get(s.members))
	mux.Handle("/v1/elections", get(s.elections))
	mux.Handle("/v1/elections/{name}", get(s.election))
	mux.Handle("/v1/elections/{name}/watch", get(s.watch))
	mux.Handle("/v1/elections/{name}/resign", s.postOf(access.HandOver, s.resign))
	mux.Handle("/v1/elections/{name}/transfer", s.postOf(access.HandOver, s.transfer))
	mux.Handle("/v1/elections/{name}/drill", methods{http.MethodGet: s.drills, http.MethodPost: s.drill})
	mux.Handle("/v1/elections/{name}/campaign", s.postOf(access.Campaign, s.campaign))
	mux.Handle("/v1/campaigns", get(s.campaigns))
	mux.Handle("/v1/campaigns/{id}/resume", s.postOwn(s.resume))
	mux.Handle("/v1/campaigns/{id}/stopped", s.postOwn(s.stopped))
	mux.Handle("/v1/voters", s.getAndPost(s.voters, s.changeVoters))
	mux.Handle("/v1/settings", s.getAndPost(s.settings, s.changeSettings))
	mux.Handle("/v1/elections/{name}/allow", s.post(s.allow))
	mux.Handle("/v1/history", get(s.history))
	mux.Handle("/v1/keys", s.getAndPost(s.keys, s.changeKeys))
	mux.Handle("/v1/drain", s.post(s.drain))
	mux.Handle("/v1/leave", s.post(s.leave))
	mux.Handle("/v1/restart", s.post(s.restart))
	mux.Handle("/v1/reload", s.post(s.reload))
	mux.Handle("/v1/log-level", s.post(s.logLevel))
	mux.Handle("/v1/debug/{part}", get(s.debug))
	return mux
}
