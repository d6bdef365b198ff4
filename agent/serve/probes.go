package serve

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

type probes struct{ *Config }

// leads answers load balancers: 200 if this agent leads, else 503. The body is the leader's
// name, if there is a leader.
func (h probes) leads(w http.ResponseWriter, r *http.Request) {
	name, err := validName(cmp.Or(r.URL.Query().Get("election"), string(election.Default)))
	if err != nil {
		refuse(w, err)
		return
	}
	e := h.seen(name)
	status, text := http.StatusServiceUnavailable, ""
	if e.IsLeader {
		status = http.StatusOK
	}
	if e.Leader != nil {
		text = e.Leader.Name + "\n"
	}
	plain(w, status, text)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may have gone
}

// livez shows that the loop still runs, not only that the socket answers.
func (h probes) livez(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if err := h.Ping(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "the agent's loop does not answer: "+err.Error()+"\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

// readyz reports whether this agent knows the leader of default, reaches a quorum, or needs none.
func (h probes) readyz(w http.ResponseWriter, _ *http.Request) {
	p := h.Picture()
	c, _ := p.contest(election.Default)
	_, led := c.LeaderAt(h.Clock())
	if q := p.Status.Quorum; !led && q.Enabled && !q.Exists {
		plain(w, http.StatusServiceUnavailable, "no leader is known, and no majority of the voters can be reached\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

// probePaths are the paths that load balancers and supervisors may ask for under any host name
// (hostNames.only). The status of these answers reveals nothing that is worth an attack.
var probePaths = []string{"/leader", "/livez", "/readyz"}

// hostNames are names of this host, besides IP addresses and localhost.
type hostNames []string

// only returns a handler that answers requests whose Host header names this host as an operator would: by an
// IP address, localhost or a configured name. Without this check, a web page from elsewhere could make its own
// name resolve to this address (DNS rebinding). It could then read the answer in the browser of somebody who
// may reach this listener. A probe gets its status under any name, but no body: load balancers ask under the
// name of their service.
func (h hostNames) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.has(r.Host):
		case slices.Contains(probePaths, r.URL.Path):
			w = silent{w}
		default:
			refuse(w, refusal(api.CodeForbidden, "this listener does not accept the host name "+clip(r.Host)+
				": use an IP address or localhost, or add the name to http-hosts in the agent's configuration"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

type silent struct{ http.ResponseWriter }

func (silent) Write(p []byte) (int, error) { return len(p), nil }

// has reports whether a Host header, with or without a port, names this host. A client without
// the header speaks plain HTTP/1.0, so it is not a browser, and is accepted.
func (h hostNames) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	same := func(name string) bool { return strings.EqualFold(host, strings.TrimSuffix(name, ".")) }
	return same("localhost") || slices.ContainsFunc(h, same)
}
