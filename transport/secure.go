package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
)

var errLeft = errors.New("the peer disconnected while it waited")

// patient is a security transport whose inbound handshakes wait for their turn.
type patient struct {
	sec.SecureTransport
	known  func(netip.Addr) place
	line   *handshakes
	within time.Duration // how long a handshake may take
}

// SecureInbound waits for its turn if the connection comes from an address of a member.
// Other connections have no line, since anybody could block it: only the doorman bounds
// them.
func (p patient) SecureInbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	from := addrOf(c.RemoteAddr())
	at := p.known(from)
	if at.peers == 0 {
		return p.secure(ctx, c, id)
	}
	turn, err := p.line.answer(ctx, from, at)
	if err != nil {
		return nil, err
	}
	if hungUp(c) {
		p.line.end(turn, false)
		return nil, errLeft
	}
	s, err := p.secure(ctx, c, id)
	p.line.end(turn, timedOut(err))
	return s, err
}

func (p patient) secure(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	return p.SecureTransport.SecureInbound(ctx, c, id)
}

// timedOut reports whether the error is a time limit that passed.
func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// addrOf returns the IP address, or zero if there is none.
func addrOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
}
