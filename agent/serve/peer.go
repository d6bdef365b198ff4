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

// withPlace adds a new connection to the context of its requests, and records when it was accepted.
func (s *Server) withPlace(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*socket.Conn); ok {
		k.Accepted = s.Clock()
		return context.WithValue(ctx, placeKey{}, k)
	}
	return ctx
}

// placeOf is the connection on which a request came; nil: none, since another agent forwards the request.
func placeOf(r *http.Request) *socket.Conn {
	k, _ := r.Context().Value(placeKey{}).(*socket.Conn)
	return k
}

// caller is the process that sent a request; nil: the kernel does not name it. A zero Peer
// instead of nil would pass for root.
func caller(r *http.Request) *socket.Peer {
	if k := placeOf(r); k != nil && k.Vouched {
		return &k.Peer
	}
	return nil
}

// userOf is the user that a request counts for; overTCP: the kernel names no user.
func userOf(r *http.Request) uint32 {
	if p := caller(r); p != nil {
		return p.UID
	}
	return overTCP
}

// may returns why the caller does not have the right; nil: it has the right. A right that is given
// for one election counts only for that election.
func (c *Config) may(r *http.Request, right access.Right, election string) error {
	p := caller(r)
	switch {
	case isForwarded(r):
		return c.fromVoter(r)
	case p == nil || c.Access == nil:
		return refusal(api.CodeForbidden, "changes are accepted only from processes of this host, over the Unix socket")
	case right == anybody:
		return nil
	}
	if err := c.Access.May(p.Who, right, election); err != nil {
		return refusal(api.CodeForbidden, err.Error())
	}
	return nil
}

// fromVoter refuses a request that another agent forwards, unless that agent is a voter.
func (c *Config) fromVoter(r *http.Request) error {
	from, passed := passedBy(r)
	if p := c.Picture(); passed && !p.Status.Roster.Has(from) {
		return refusal(api.CodeForbidden, "changes are accepted only from agents that are voters, and "+
			p.Names.Of(from)+" is not one: run the command on the host of a voter")
	}
	return nil
}
