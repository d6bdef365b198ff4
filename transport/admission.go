package transport

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multistream"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

// Pass is what the hello of the side that dials brings, so that a peer which does not know the sender yet
// may let it in. Up to 0.5.0, agents ignore it.
type Pass struct {
	Advert []byte         `cbor:"15,keyasint,omitempty"` // what the sender gossips about itself, signed by it
	Proof  []byte         `cbor:"16,keyasint,omitempty"` // that the sender has a cluster key; only this receiver accepts it
	Gossip netip.AddrPort `cbor:"17,keyasint,omitzero"`  // the sender's gossip address, in binary
}

// Admission lets in agents that SetPeers has not named: where many agents start at once, gossip takes long to show
// each of them. Several goroutines call the functions, which must not block.
type Admission struct {
	Pass func(to election.PeerID) Pass
	// Judge returns where the agent listens, or why it is not let in.
	Judge func(from election.PeerID, p Pass) (netip.AddrPort, error)
}

// maxLinks bounds the peers, with the guests among them: gossip lists as many members.
const maxLinks = 1024

var (
	errCrowded = errors.New("too many agents are connected")
	errMissed  = errors.New("the cluster's keys or the list of peers have changed meanwhile")
)

// Admit makes the transport let in guests: agents that SetPeers has not named, and that Admission accepts.
// A guest remains until its connection is lost, Dismiss ends it, or SetPeers names it.
func (t *Transport) Admit(a Admission) { t.admission.Store(&a) }

// Dismiss ends the connections of these guests; with no argument, of all guests.
func (t *Transport) Dismiss(guests ...election.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.era.Add(1)
	for id, l := range t.links {
		if l.guest && !t.closed && (len(guests) == 0 || slices.Contains(guests, id)) {
			delete(t.links, id)
			l.remove()
		}
	}
}

// visit lets in an agent that is not a peer, if its hello shows that it may come in. Until then it gets
// no answer, so that a stranger learns nothing.
func (t *Transport) visit(c transport.CapableConn) {
	from := addrPort(c.RemoteMultiaddr())
	source := door.Network(from.Addr())
	err := t.visitors.Enter(source, 1, maxPendingPerIP, t.knows(from.Addr()).peers > 0)
	if err == nil {
		defer t.visitors.Leave(source, 1)
		err = t.examine(c)
	}
	if err != nil {
		_ = c.Close()
		t.turnAway(idOf(c.RemotePeer()), from)
		t.log.Debug("refuse an agent that gossip does not show", "peer", c.RemotePeer().String(), "addr", from, "err", err)
	}
}

// examine reads the hello of an agent that is not a peer, judges it, and gives the connection to a link.
func (t *Transport) examine(c transport.CapableConn) error {
	era := t.era.Load() // read before the judgement
	ctx, cancel := context.WithTimeout(t.ctx, t.limits.greet)
	defer cancel()
	w, err := t.awaitStream(ctx, c)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	body, err := w.peek(maxHello)
	if err != nil {
		return err
	}
	var theirs helloFrame
	if err := frames().Unmarshal(body, &theirs); err != nil {
		return err
	}
	id := idOf(c.RemotePeer())
	addr, err := t.admission.Load().Judge(id, theirs.Pass)
	if err != nil {
		return err
	}
	return t.welcome(c.RemotePeer(), Peer{ID: id, Addr: addr}, w, era)
}

// welcome makes a link for a guest. If SetPeers has named it meanwhile, its link gets the connection.
func (t *Transport) welcome(id peer.ID, p Peer, w *wire, era int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[p.ID]
	switch {
	case t.closed || t.era.Load() != era || l != nil && l.dials:
		return errMissed
	case l != nil:
		t.running.Go(func() { l.arrive(w) })
		return nil
	case len(t.links) >= maxLinks:
		return errCrowded
	}
	t.strangers.forget(p.ID)
	l = newLink(t, id, p)
	l.guest, l.brought = true, w
	t.links[p.ID] = l
	t.running.Go(l.loop)
	return nil
}

// part removes the link of a guest whose connection has ended, and reports whether it did.
func (l *link) part() bool {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if !l.guest || l.busy || l.holds() || l.t.closed {
		return false
	}
	if l.t.links[l.id] == l {
		delete(l.t.links, l.id)
	}
	l.remove()
	return true
}

// holds reports whether Connected was reported, but not yet Lost.
func (l *link) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held != 0
}

func (l *link) pass() Pass {
	if a := l.t.admission.Load(); a != nil {
		return a.Pass(l.id)
	}
	return Pass{}
}

// asGuest returns the pass of a guest that has connected; nil: the peer is not a guest.
func (l *link) asGuest(p Pass) *Pass {
	l.t.mu.RLock()
	defer l.t.mu.RUnlock()
	if !l.guest {
		return nil
	}
	return &p
}

// awaitStream waits for the stream that the other side opens. After an error, the connection is closed.
func (t *Transport) awaitStream(ctx context.Context, c transport.CapableConn) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, t.limits.greet)
	defer cancel()
	release := context.AfterFunc(ctx, func() { _ = c.Close() })
	s, err := c.AcceptStream()
	if err == nil {
		mux := multistream.NewMultistreamMuxer[string]()
		mux.AddHandler(protocolID, nil)
		_, _, err = mux.Negotiate(s)
	}
	if !release() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return newWire(c, s), nil
}
