package serve

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/api"
)

// probes are the paths that load balancers and supervisors ask for under any host name. Their
// status reveals nothing that is worth an attack; see forHosts.
var probes = []string{"/leader", "/livez", "/readyz"}

// forHosts answers only if the caller names this host as an operator would: by an IP address,
// localhost or a configured name. A web page from elsewhere can have its own name resolve to
// this address (DNS rebinding). In the browser of somebody who may reach this listener, the
// page would then read the answer; but its name is not one of these. A probe gets its status
// under any name, without a body: load balancers ask under the name of their service.
func (s *Server) forHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.knownHost(r.Host):
		case slices.Contains(probes, r.URL.Path):
			w = silent{w}
		default:
			fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: "this listener does not accept the host name " + clip(r.Host) +
				": use an IP address or localhost, or add the name to http-hosts in the agent's configuration"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// silent drops the body of an answer.
type silent struct{ http.ResponseWriter }

func (silent) Write(p []byte) (int, error) { return len(p), nil }

// knownHost judges a Host header, with or without a port. Without the header the client speaks
// plain HTTP/1.0, so it is not a browser.
func (s *Server) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	same := func(name string) bool { return strings.EqualFold(host, strings.TrimSuffix(name, ".")) }
	return same("localhost") || slices.ContainsFunc(s.Hosts, same)
}
