package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/user"
	"strconv"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
)

// peer is who is at the other end of a Unix socket, as the kernel reports.
type peer struct {
	access.Who
	pid int32 // 0: the system does not report it
}

type peerKey struct{}

// withPeer records the peer of a new connection; a TCP connection has none.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*placed); ok && k.vouched {
		return context.WithValue(ctx, peerKey{}, k.peer)
	}
	return ctx
}

// peerOf asks the kernel who is at the other end.
func peerOf(c net.Conn) (peer, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}, errors.New("identify the process at the other end: not a Unix socket")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("identify the process at the other end: %w", err)
	}
	var p peer
	var asked error
	if err := raw.Control(func(fd uintptr) { p, asked = credentials(int(fd)) }); err != nil {
		return peer{}, fmt.Errorf("identify the process at the other end: %w", err)
	}
	if asked != nil {
		return peer{}, fmt.Errorf("identify the process at the other end: %w", asked)
	}
	return p, nil
}

// caller is the process that sent a request; false if the kernel does not name it.
func caller(r *http.Request) (peer, bool) {
	p, ok := r.Context().Value(peerKey{}).(peer)
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

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
