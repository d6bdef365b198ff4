package transport

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
	"github.com/doyen-election/doyen/internal/door"
)

const (
	// maxPendingPerIP bounds the inbound connections from one address that have not proven an identity yet. For
	// IPv6, an address here is a whole /64, which one host can have. Each such connection ends within
	// limits.greet after its handshake has started.
	maxPendingPerIP = 64
	// maxStrangers bounds how many unknown peers are remembered.
	maxStrangers = 64
	// strangerGrace is how long an unknown peer may connect before it is reported. While a cluster forms,
	// one of two peers learns of the other first, and much earlier if many agents share a busy machine.
	strangerGrace = 30 * time.Second
	// strangerLong: a peer that has failed for longer dials only rarely, so this agent has to wake it.
	strangerLong = 2 * time.Second
	// strangerForget is how long an unknown peer must be silent before it is reported again.
	strangerForget = time.Minute
)

var errStranger = errors.New("it is not a known member")

// gater accepts the peers on the allow-list, once they have proven their identity, and those that may be guests.
type gater struct{ t *Transport }

var _ connmgr.ConnectionGater = gater{}

func (gater) InterceptPeerDial(peer.ID) bool                                  { return true }
func (gater) InterceptAddrDial(peer.ID, ma.Multiaddr) bool                    { return true }
func (gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

func (g gater) InterceptAccept(c network.ConnMultiaddrs) bool {
	// When the handshake starts, Noise sets its own deadline.
	if c, ok := c.(net.Conn); ok && c.SetReadDeadline(time.Now().Add(g.t.limits.greet)) != nil {
		return false // the connection is closed already
	}
	return !g.t.isClosing()
}

func (g gater) InterceptSecured(dir network.Direction, p peer.ID, addrs network.ConnMultiaddrs) bool {
	if err := tune(addrs, silence(g.t.hello.Lease)); err != nil {
		g.t.log.Debug("keep the system's TCP timeouts", "peer", p.String(), "err", err)
	}
	if dir == network.DirOutbound {
		return true
	}
	l := g.t.link(idOf(p))
	switch {
	case l == nil && p != g.t.host.self && g.t.admission.Load() != nil:
		return true // its hello decides (see visit)
	case l == nil:
		g.t.turnAway(idOf(p), addrPort(addrs.RemoteMultiaddr()))
		return false
	case l.dials:
		g.t.count.refused[refuseDirection].Add(1)
		offer.To(l.woken, struct{}{})
		return false
	}
	return true
}

// turnAway counts an unknown peer that is refused.
func (t *Transport) turnAway(p election.PeerID, from netip.AddrPort) {
	t.strangers.knock(t.box, p, from)
	t.count.refused[refuseUnknownPeer].Add(1) // counted last, so that a reader who sees the count also finds the stranger
}

// strangers remembers which unknown peers connect, so that each is reported once.
type strangers struct {
	mu    sync.Mutex
	known map[election.PeerID]*stranger
	grace time.Duration // strangerGrace; shorter in tests
}

type stranger struct {
	first, last time.Time
	told        bool
}

func (s *strangers) knock(box *mailbox, p election.PeerID, from netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	k := s.known[p]
	if k == nil || now.Sub(k.last) > strangerForget {
		maps.DeleteFunc(s.known, func(_ election.PeerID, k *stranger) bool { return now.Sub(k.last) > strangerForget })
		if len(s.known) >= maxStrangers {
			return
		}
		k = &stranger{first: now}
		s.known[p] = k
	}
	k.last = now
	if !k.told && now.Sub(k.first) >= s.grace {
		k.told = box.put(Refused{Peer: p, Addr: from, Err: errStranger})
	}
}

// forget drops a peer that is known now. If gossip errs and the peer becomes unknown again, it is
// reported again. forget returns whether the peer had tried to connect for longer than strangerLong.
func (s *strangers) forget(p election.PeerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[p]
	delete(s.known, p)
	return k != nil && time.Since(k.first) >= strangerLong
}

// doorman counts inbound connections that have not proven an identity yet. It is the only part of
// libp2p's resource manager that is needed here.
type doorman struct {
	network.NullResourceManager
	full   func()                // called for each connection that is turned away
	known  func(netip.Addr) bool // reports whether it is a member's address
	places *door.Places[netip.Prefix]
}

var errPending = errors.New("too many connections have not proven an identity yet")

// OpenConnection implements network.ResourceManager.
func (d *doorman) OpenConnection(dir network.Direction, usefd bool, from ma.Multiaddr) (network.ConnManagementScope, error) {
	if dir == network.DirOutbound {
		return d.NullResourceManager.OpenConnection(dir, usefd, from)
	}
	ip := addrPort(from).Addr()
	known, source := d.known(ip), door.Network(ip)
	if known {
		source = netip.PrefixFrom(ip, ip.BitLen()) // members may share an IPv6 network, so each member's address counts alone
	}
	if d.places.Enter(source, 1, maxPendingPerIP, known) != nil {
		d.full()
		return nil, errPending
	}
	return &visit{leave: sync.OnceFunc(func() { d.places.Leave(source, 1) })}, nil
}

// visit is one inbound connection that has not proven an identity yet.
type visit struct {
	network.NullScope
	leave  func()
	proven atomic.Bool
}

// SetPeer implements network.ConnManagementScope: the identity is proven.
func (v *visit) SetPeer(peer.ID) error {
	v.proven.Store(true)
	v.leave()
	return nil
}

// PeerScope implements network.ConnManagementScope: nil until SetPeer.
func (v *visit) PeerScope() network.PeerScope {
	if !v.proven.Load() {
		return nil
	}
	return v.NullScope.PeerScope()
}

// Done implements network.ResourceScopeSpan: the connection has ended.
func (v *visit) Done() { v.leave() }

// addrPort returns the address and port, or zero if it is not an address of TCP over IP.
func addrPort(m ma.Multiaddr) netip.AddrPort {
	if m == nil {
		return netip.AddrPort{}
	}
	a, err := manet.ToNetAddr(m)
	if err != nil {
		return netip.AddrPort{}
	}
	return addrOf(a)
}

// addrOf returns the IP address and port, or zero if there is none.
func addrOf(a net.Addr) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
