package transport

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/crypto/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// limits bound how long connecting may take. They grow with the heartbeat, which operators choose to fit
// the round trip.
type limits struct {
	// connect bounds the TCP connect of a dial. The kernel repeats a lost packet only after a second. So
	// a short limit and a new dial find a healed link sooner.
	connect time.Duration
	// greet bounds the handshakes of an inbound connection. It also bounds an attempt, from the dial to
	// the last verdict.
	greet time.Duration
	// turn bounds how long an inbound connection waits for its handshake.
	turn time.Duration
}

// greetMost: after attempts that timed out, the next one may take up to greetMost times limits.greet.
const greetMost = 4

// greetVoter: an attempt with a voter may take greetVoter/2 times limits.greet, mostly 2.5 times 2 s. If many
// agents start at once, all of them call the voters, which answer each other first.
const greetVoter = 5

func limitsFor(heartbeat time.Duration) limits {
	greet := max(2*time.Second, 4*heartbeat)
	return limits{connect: max(300*time.Millisecond, heartbeat), greet: greet, turn: (greetMost - 1) * greet}
}

// within is how long an attempt may take after the given number of timeouts in a row: the peer may have been
// busy, so it gets more time.
func (l limits) within(timeouts int) time.Duration {
	return l.greet * time.Duration(min(1<<min(timeouts, 8), greetMost))
}

// host is libp2p's TCP transport with Noise and yamux. It needs none of libp2p's lists of peers,
// addresses and connections: the links know these.
type host struct {
	*tcp.TcpTransport
	self   peer.ID
	dialer *net.Dialer
}

// hostConfig is what a host is assembled from.
type hostConfig struct {
	key    crypto.PrivKey
	gate   connmgr.ConnectionGater
	door   network.ResourceManager
	within limits
	from   netip.Addr                                    // source address of dials; not valid: the system chooses
	wrap   func(sec.SecureTransport) sec.SecureTransport // around Noise; may be nil
}

// refuseOtherKeys makes libp2p read only Ed25519 keys, which all agents have. A handshake checks the
// signature of any key that it can read before it checks whose key that is. So an outsider could make it
// check large RSA signatures.
var refuseOtherKeys = sync.OnceFunc(func() {
	maps.DeleteFunc(crypto.PubKeyUnmarshallers, func(kind pb.KeyType, _ crypto.PubKeyUnmarshaller) bool {
		return kind != pb.KeyType_Ed25519
	})
})

func newHost(c hostConfig) (*host, error) {
	refuseOtherKeys()
	id, err := peer.IDFromPrivateKey(c.key)
	if err != nil {
		return nil, fmt.Errorf("derive peer ID: %w", err)
	}
	h := &host{self: id, dialer: c.dialer()}
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: muxer()}}
	security, err := noise.New(noise.ID, c.key, muxers)
	if err != nil {
		return nil, fmt.Errorf("create noise: %w", err)
	}
	var secure sec.SecureTransport = security
	if c.wrap != nil {
		secure = c.wrap(security)
	}
	up, err := upgrader.New([]sec.SecureTransport{secure}, muxers, nil, c.door, c.gate, upgrader.WithAcceptTimeout(c.within.turn+c.within.greet))
	if err != nil {
		return nil, fmt.Errorf("create upgrader: %w", err)
	}
	// With reused ports, two agents on one host would collide. Only hole punching needs reused ports.
	h.TcpTransport, err = tcp.NewTCPTransport(up, c.door, nil, tcp.DisableReuseport(), tcp.WithConnectionTimeout(c.within.connect),
		tcp.WithDialerForAddr(func(ma.Multiaddr) (tcp.ContextDialer, error) { return h.dialer, nil }))
	if err != nil {
		return nil, fmt.Errorf("create tcp: %w", err)
	}
	return h, nil
}

// dialer dials from the address that this agent listens at, if it is a single one: the others usually know
// it, and reserve places for known addresses.
func (c hostConfig) dialer() *net.Dialer {
	if !c.from.IsValid() || c.from.IsUnspecified() {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 0))}
}

// muxer is yamux for a connection with one stream. It sends no keepalives: the kernel sends them, without
// waking a process.
func muxer() *yamux.Transport {
	config := *yamux.DefaultTransport.Config() // the default is shared, so it is copied before a change
	config.EnableKeepAlive = false
	config.MeasureRTTInterval = time.Hour // practically never: 0 is not allowed
	config.ConnectionWriteTimeout = 5 * time.Second
	config.MaxIncomingStreams = 4
	config.AcceptBacklog = 4
	config.MaxStreamWindowSize = 1 << 20
	return (*yamux.Transport)(&config)
}

// dial connects to that address, and checks that the peer there is p.
func (h *host) dial(ctx context.Context, p peer.ID, addr netip.AddrPort) (transport.CapableConn, error) {
	m, err := multiaddr(addr)
	if err != nil {
		return nil, err
	}
	return h.Dial(ctx, m, p)
}

// PeerIDOf returns the peer ID that the key proves.
func PeerIDOf(key ed25519.PublicKey) (election.PeerID, error) {
	var id peer.ID
	k, err := crypto.UnmarshalEd25519PublicKey(key)
	if err == nil {
		id, err = peer.IDFromPublicKey(k)
	}
	return idOf(id), wrap.Error(err, "derive peer ID")
}

func idOf(p peer.ID) election.PeerID { return election.PeerID(p.String()) }

func multiaddr(a netip.AddrPort) (ma.Multiaddr, error) {
	m, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.Addr().Unmap(), a.Port())))
	return m, wrap.Error(err, "convert address %s", a)
}

// logTo makes libp2p log warnings and errors to the handler. libp2p has one handler for the whole
// process, and each of its parts keeps the first handler that it gets.
func logTo(h slog.Handler) { gologshim.SetDefaultHandler(warnings{h}) }

// warnings drops records below the level of a warning.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
