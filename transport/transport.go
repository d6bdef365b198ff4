package transport

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/internal/base/offer"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/internal/door"
)

// Peer is an agent to be connected to.
type Peer struct {
	ID   election.PeerID
	Addr netip.AddrPort // where its transport listens
	// First peers are connected before the others. The voters are First: without them nobody can lead.
	First bool
	// Later peers can wait: agents can agree without a connection between this agent and a Later peer.
	Later bool
}

func urgencyOf(isFirst, isLater bool) urgency {
	switch {
	case isFirst:
		return first
	case isLater:
		return later
	}
	return inTurn
}

// Config is what stays the same while a transport runs.
type Config struct {
	Key    ed25519.PrivateKey // the agent's identity
	Listen netip.AddrPort     // port 0: any free port
	Hello  Hello              // what each hello contains, except Follows
	// Accept judges a peer's hello. Both sides get the text of its error. Several goroutines call it, and
	// it must not block. If it is nil, every hello is accepted.
	Accept func(election.PeerID, Hello) error
	// Follows returns the field Follows of the next hello. Several goroutines call it. If nil, the field
	// is false.
	Follows func() bool
	Logger  *slog.Logger // nil: nothing is logged

	tune func(*limits) // lets a test shorten the limits; may be nil
}

func (c Config) validate() error {
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return fmt.Errorf("key has %d bytes, expected %d", len(c.Key), ed25519.PrivateKeySize)
	case !c.Listen.IsValid():
		return errors.New("no address to listen at")
	}
	return c.Hello.Validate()
}

// Transport connects this agent to its peers. All methods may be called from
// any goroutine.
type Transport struct {
	self     election.PeerID
	hello    Hello
	follows  func() bool
	accept   func(election.PeerID, Hello) error
	log      *slog.Logger
	host     *host
	listener transport.Listener
	addr     netip.AddrPort
	door     *doorman
	box      *mailbox
	count    counters

	grace      time.Duration // the value of the constant grace; longer in tests on slow machines
	limits     limits
	dialling   *handshakes
	answering  *handshakes
	known      atomic.Pointer[map[netip.Addr]place] // the peers' addresses
	strangers  strangers
	admission  atomic.Pointer[Admission]  // nil: only the peers of SetPeers are connected
	visitors   *door.Places[netip.Prefix] // of connections whose hello decides whether they are let in
	ctx        context.Context            // when it ends, everything closes
	cancel     context.CancelFunc
	closing    chan struct{} // once closed, links send what is queued and end
	running    sync.WaitGroup
	refused    sync.Map               // kinds of messages that Send has refused
	unsendable atomic.Pointer[string] // the newest message that Send refused, and why

	mu     sync.RWMutex
	closed bool
	links  map[election.PeerID]*link // does not change once closed is set
	era    atomic.Int64              // how often Dismiss was called
}

// New listens at the configured address. It connects to nobody until SetPeers.
func New(c Config) (*Transport, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("start transport: %w", err)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Accept == nil {
		c.Accept = func(election.PeerID, Hello) error { return nil }
	}
	c.Hello.Level = Level
	c.Hello.Run = cmp.Or(c.Hello.Run, election.RunID(c.Hello.Lineage))
	logTo(c.Logger.Handler())
	t := &Transport{
		hello: c.Hello, follows: c.Follows, accept: c.Accept, log: c.Logger,
		box:       newMailbox(),
		strangers: strangers{known: map[election.PeerID]*stranger{}, grace: strangerGrace},
		grace:     grace, limits: limitsFor(c.Hello.Heartbeat),
		visitors: door.NewPlaces[netip.Prefix](door.Unproven, door.ForMembers),
		closing:  make(chan struct{}), links: map[election.PeerID]*link{},
	}
	if c.tune != nil {
		c.tune(&t.limits)
	}
	t.dialling, t.answering = newHandshakes(t.limits.greet), newHandshakes(t.limits.greet)
	t.known.Store(&map[netip.Addr]place{})
	t.door = &doorman{
		places: door.NewPlaces[netip.Prefix](door.Unproven, door.ForMembers), full: func() { t.count.refused[refusePending].Add(1) },
		known: func(a netip.Addr) bool { at := t.knows(a); return at.first || at.peers > 0 && !t.answering.closed() },
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if err := t.listen(c); err != nil {
		t.cancel()
		return nil, fmt.Errorf("start transport: %w", err)
	}
	return t, nil
}

func (t *Transport) listen(c Config) error {
	key, err := crypto.UnmarshalEd25519PrivateKey(c.Key)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	at, err := multiaddr(c.Listen)
	if err != nil {
		return err
	}
	t.host, err = newHost(hostConfig{
		key: key, gate: gater{t}, door: t.door, within: t.limits, from: c.Listen.Addr(),
		wrap: func(s sec.SecureTransport) sec.SecureTransport {
			return patient{SecureTransport: s, known: t.knows, line: t.answering, within: t.limits.greet}
		},
	})
	if err != nil {
		return err
	}
	t.self = idOf(t.host.self)
	if t.listener, err = t.host.Listen(at); err != nil {
		return fmt.Errorf("listen at %s: %w", c.Listen, err)
	}
	t.addr = addrPort(t.listener.Multiaddr())
	t.running.Go(t.serve)
	return nil
}

// Ready gets an element when Next should be called, and called again until it returns false.
func (t *Transport) Ready() <-chan struct{} { return t.box.ready }

// Next returns the event that is to be handled next, in the order of package inbox. It returns false if
// there is none. It never blocks.
func (t *Transport) Next() (Event, bool) { return t.box.take() }

// Addr returns the address the transport listens at, with the port it got.
func (t *Transport) Addr() netip.AddrPort { return t.addr }

// SetPeers replaces the peers that this agent may talk to. The transport keeps a connection to each as far
// as it can, and closes those to all others but guests (see Admit). If a peer's address has changed, a
// connection that works is kept. Invalid peer IDs and this agent's own are skipped.
func (t *Transport) SetPeers(peers []Peer) {
	wanted := make(map[peer.ID]Peer, len(peers))
	known := make(map[netip.Addr]place, len(peers))
	for _, p := range peers {
		id, err := peer.Decode(string(p.ID))
		if err != nil || !p.Addr.IsValid() {
			t.log.Warn("skip a peer that can't be dialled", "peer", string(p.ID), "addr", p.Addr, "err", err)
			continue
		}
		if p.ID != t.self {
			wanted[id] = p
		}
	}
	for _, p := range wanted {
		at := p.Addr.Addr().Unmap()
		known[at] = place{first: known[at].first || p.First, peers: known[at].peers + 1, of: len(wanted)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.known.Store(&known)
	for id, l := range t.links {
		if _, ok := wanted[l.pid]; !ok && !l.guest {
			delete(t.links, id)
			l.remove()
		}
	}
	for id, p := range wanted {
		if l := t.links[p.ID]; l != nil {
			l.guest = false
			l.relocate(p)
			continue
		}
		l := newLink(t, id, p)
		l.wakes = t.strangers.forget(p.ID) || t.hello.isLater()
		t.links[l.id] = l
		t.running.Go(l.loop)
	}
	t.dialling.look()
	t.answering.look() // a caller may be known as a voter now
}

// VotersOnly makes the transport answer only First peers while `on` is true, for 10 s at most in its life. It is
// for voters that have no roster yet: until they have one, a connection to them is of no use to other agents.
func (t *Transport) VotersOnly(on bool) { t.answering.favour(on) }

// relocate stores the peer's urgency and address. It wakes the loop if the address is new, or a visit may be due.
func (l *link) relocate(p Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := urgency(l.urgency.Swap(int32(urgencyOf(p.First, p.Later))))
	if l.addr == p.Addr && (l.dials || was == l.urgent()) {
		return
	}
	l.addr = p.Addr
	offer.To(l.moved, struct{}{})
}

// place is what is known of an address that peers have.
type place struct {
	peers, of int  // how many peers have the address, and how many peers there are
	first     bool // one of them is a First peer
}

// knows returns what is known of the address: a zero place if no peer has it.
func (t *Transport) knows(a netip.Addr) place { return (*t.known.Load())[a] }

func (t *Transport) link(p election.PeerID) *link {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.links[p]
}

// Met reports whether the peer is connected.
func (t *Transport) Met(p election.PeerID) bool {
	l := t.link(p)
	return l != nil && l.current() != nil
}

func (t *Transport) isClosing() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.closed
}

// Send queues the message for the peer and never blocks. It returns false if it dropped the message;
// Stats counts the reasons. If it returns true, the message may still be lost.
func (t *Transport) Send(to election.PeerID, m election.Message) bool {
	l := t.link(to)
	if l == nil || t.isClosing() {
		t.count.dropped[dropUnknownPeer].Add(1)
		return false
	}
	s, level := l.connected()
	if s == nil {
		t.count.dropped[dropNotConnected].Add(1)
		return false
	}
	if level < levelOf(m) {
		t.count.dropped[dropLevel].Add(1)
		return false
	}
	body, err := codec.EncodeMessage(m)
	if err != nil {
		t.count.dropped[dropEncode].Add(1)
		t.refuse(to, m, err)
		return false
	}
	ok, replaced := s.out.put(m, body)
	switch {
	case !ok:
		t.count.dropped[dropQueueFull].Add(1)
	case replaced:
		t.count.dropped[dropOutdated].Add(1)
	}
	return ok
}

// levelOf is the lowest feature level of a peer to which Send sends the message.
func levelOf(m election.Message) uint64 {
	switch m.(type) {
	case election.Call, election.CallAnswer:
		return 2
	}
	return 0
}

// refuse records a message that can't be sent. It logs each kind only once, since the same cause usually
// comes again and again.
func (t *Transport) refuse(to election.PeerID, m election.Message, err error) {
	kind := election.Kind(m)
	text := fmt.Sprintf("a %s can't be sent: %v; please report this, and restart this agent", kind, err)
	t.unsendable.Store(&text)
	if _, logged := t.refused.LoadOrStore(kind, true); !logged {
		t.log.Error("drop a message that no correct agent sends", "peer", string(to), "err", err)
	}
}

// Unsendable describes the newest message that was not sent because it had a value that a correct agent
// never sends. It is empty if there was none since the start.
func (t *Transport) Unsendable() string {
	return *cmp.Or(t.unsendable.Load(), new(string))
}

// Suspect closes the connection to a peer that has been silent for too long, reports Lost, and dials
// again. It spares a connection younger than two of the configured heartbeats. So call it again if the
// silence lasts.
func (t *Transport) Suspect(p election.PeerID) {
	if l := t.link(p); l != nil {
		offer.To(l.suspected, struct{}{})
	}
}

// Stats returns the counters.
func (t *Transport) Stats() Stats {
	s := t.count.stats()
	s.Dropped[dropNames()[dropOutdated]] += t.box.outdated()
	return s
}

// Close stops accepting connections, sends what is queued, and waits until the peers have read it or ctx
// ends. Then it closes every connection. After it returns, nothing of the transport runs. The error names
// what was cut short.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	links := t.links
	t.mu.Unlock()

	err := t.listener.Close()
	close(t.closing)
	var cut error
	for _, l := range links {
		select {
		case <-l.ctx.Done(): // the link's loop has sent what was queued
		case <-ctx.Done():
			cut = fmt.Errorf("flush: %w", ctx.Err())
		}
	}
	err = errors.Join(err, cut)
	t.cancel()
	t.running.Wait()
	return wrap.Error(err, "close transport")
}
