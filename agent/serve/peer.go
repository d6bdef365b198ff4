package serve

import (
	"context"
	"net"
	"net/http"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
)

type placeKey struct{}

// withPlace records a new connection.
func (s *Server) withPlace(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*socket.Conn); ok {
		k.Accepted = s.Clock()
		return context.WithValue(ctx, placeKey{}, k)
	}
	return ctx
}

// placeOf is the connection on which a request came; nil: another agent forwards it.
func placeOf(r *http.Request) *socket.Conn {
	k, _ := r.Context().Value(placeKey{}).(*socket.Conn)
	return k
}

// caller is the process that sent a request; false if the kernel does not name it.
func caller(r *http.Request) (socket.Peer, bool) {
	if k := placeOf(r); k != nil && k.Vouched {
		return k.Peer, true
	}
	return socket.Peer{}, false
}

// may returns why the caller does not have the right. Some rights are granted for one election:
// then the election must be the given one.
func (c *Config) may(r *http.Request, right access.Right, election string) error {
	p, ok := caller(r)
	switch {
	case isForwarded(r):
		return c.fromVoter(r)
	case !ok || c.Access == nil:
		return refusal(api.CodeForbidden, "changes are accepted only from processes of this host, over the Unix socket")
	case right == anybody:
		return nil
	}
	if err := c.Access.May(p.Who, right, election); err != nil {
		return refusal(api.CodeForbidden, err.Error())
	}
	return nil
}

// fromVoter returns why a request that another agent forwards is not accepted.
func (c *Config) fromVoter(r *http.Request) error {
	from, passed := passedBy(r)
	if p := c.Picture(); passed && !p.Status.Roster.Has(from) {
		return refusal(api.CodeForbidden, "changes are accepted only from agents that are voters, and "+
			p.name(from)+" is not one: run the command on the host of a voter")
	}
	return nil
}
