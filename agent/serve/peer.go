package serve

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
)

type peerKey struct{}

// withPeer records the peer of a new connection; a TCP connection has none.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*placed); ok && k.vouched {
		return context.WithValue(ctx, peerKey{}, k.peer)
	}
	return ctx
}

// caller is the process that sent a request; false if the kernel does not name it.
func caller(r *http.Request) (socket.Peer, bool) {
	p, ok := r.Context().Value(peerKey{}).(socket.Peer)
	return p, ok
}

// may reports whether the caller has the right, and answers if not. Some rights are granted
// for one election: then the election must be the given one.
func (c *Config) may(w http.ResponseWriter, r *http.Request, right access.Right, election string) bool {
	p, ok := caller(r)
	var err error
	switch {
	case !ok || c.Access == nil:
		err = errors.New("changes are accepted only from processes of this host, over the Unix socket")
	default:
		err = c.Access.May(p.Who, right, election)
	}
	if err != nil {
		fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: err.Error()})
	}
	return err == nil
}
