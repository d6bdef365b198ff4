package membership

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/internal/base/offer"
)

var errWireClosed = errors.New("membership is closed")

// wire is memberlist's network. It is bounded, can be closed, and passes on only what the guard passes.
// At shutdown it ends all dials and streams: else memberlist's goroutines would go on waiting for them.
type wire struct {
	udp       *net.UDPConn
	tcp       *net.TCPListener // has the same port number as udp
	packets   chan *memberlist.Packet
	guard     *guard
	admission *admission
	advertise netip.AddrPort
	bind      netip.Addr
	dialLimit time.Duration
	readLimit time.Duration // how long one message of a stream may take
	streams   chan net.Conn
	faults    chan<- Refusal // which sender can't be understood, and why; bounded, and some may be lost
	noise     atomic.Int64
	known     atomic.Pointer[acquaintances]
	ctx       context.Context // ends at shutdown
	cancel    context.CancelFunc
	pumped    sync.WaitGroup
}

// acquaintances are the addresses that this agent knows. The struct is replaced, never changed.
type acquaintances struct {
	members map[netip.Addr]bool // the addresses in memberlist's list
	sought  map[netip.Addr]bool // the addresses of seeds and lost members that memberlist does not list
}

// worthNaming reports whether to name the sender's address when a datagram was not let in. Anybody can write
// any address on a datagram. So an address is named only if this agent tries to reach it, or if a member has
// it and the datagram was made with the key.
func (k *acquaintances) worthNaming(kind faultKind, host netip.Addr) bool {
	return k.sought[host] || kind == faultMessage && k.members[host]
}

// listen binds UDP and TCP on one port.
func listen(cfg Config, g *guard, t timing, faults chan<- Refusal) (*wire, error) {
	w := &wire{
		guard: g, admission: newAdmission(), bind: cfg.Bind.Unmap(), dialLimit: t.dial, readLimit: t.tcp,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), faults: faults,
	}
	w.known.Store(&acquaintances{})
	w.ctx, w.cancel = context.WithCancel(context.Background())
	var err error
	if w.udp, w.tcp, err = bind(cfg.Bind, cfg.Port); err != nil {
		return nil, err
	}
	w.advertise = netip.AddrPortFrom(cfg.advertised(), boundTo(w.tcp))
	w.pumped.Go(w.receive)
	w.pumped.Go(w.pump)
	return w, nil
}

// suspect reports a sender that can't be understood.
func (w *wire) suspect(f *fault, at netip.AddrPort) {
	if r, ok := refusalFor(f, at, w.guard.label); ok {
		offer.To(w.faults, r) // if this is lost, the same fault comes again
	}
}

// acceptPause keeps the loop from spinning while accept fails, for example for lack of file descriptors.
const acceptPause = 50 * time.Millisecond

// pump admits inbound streams while there are places, and closes the others: their agents will try again.
func (w *wire) pump() {
	for {
		c, err := w.tcp.Accept()
		switch {
		case err == nil:
			w.admit(c)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			pause, stop := context.WithTimeout(w.ctx, acceptPause)
			<-pause.Done()
			stop()
		}
	}
}

func (w *wire) admit(c net.Conn) {
	from := addrOf(c).Addr()
	known := w.known.Load()
	p, err := w.admission.enter(from, known.members[from] || known.sought[from])
	if err != nil {
		_ = c.Close()
		return
	}
	w.pumped.Go(func() { w.examine(w.track(c, p)) })
}

// examine reads an inbound stream's message. If it passes the guard, memberlist gets the stream.
func (w *wire) examine(s *stream) {
	_ = s.Conn.SetDeadline(time.Now().Add(w.readLimit))
	message, f := w.guard.inbound(s.Conn, s.place)
	if f == nil {
		s.place.trust()
		s.head, s.whole = message, true
		_ = s.Conn.SetDeadline(time.Time{}) // memberlist sets its own deadline
		w.hand(s)
		return
	}
	w.suspect(f, netip.AddrPortFrom(addrOf(s).Addr(), 0))
	if f.kind.ofKey() {
		_, _ = s.Conn.Write(refuse(f.kind)) // so few bytes that the write does not block
	}
	s.bad.Store(f.kind != faultIncomplete)
	_ = s.Close()
}

// addrOf is the address of a stream's other end.
func addrOf(c net.Conn) netip.AddrPort {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		a = netip.AddrPortFrom(netip.IPv6Loopback(), 0)
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// hand gives memberlist a stream to serve.
func (w *wire) hand(s *stream) {
	select {
	case w.streams <- s:
	case <-w.ctx.Done():
		_ = s.Close()
	}
}

// track makes a stream of a connection, which Shutdown closes if it is still open.
func (w *wire) track(c net.Conn, p *place) *stream {
	return &stream{Conn: c, wire: w, place: p, untrack: context.AfterFunc(w.ctx, func() { _ = c.Close() })}
}

func (w *wire) StreamCh() <-chan net.Conn { return w.streams }

func (w *wire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.advertise.Addr().AsSlice(), int(w.advertise.Port()), nil
}

func (w *wire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	d := w.dialer(timeout)
	c, err := d.DialContext(w.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return w.track(c, w.admission.opened()), nil
}

// dialer dials from the address that this agent is bound to, if there is one: the others usually know it,
// and reserve places for known addresses. The transport does the same.
func (w *wire) dialer(timeout time.Duration) net.Dialer {
	d := net.Dialer{Timeout: min(timeout, w.dialLimit)}
	if !w.bind.IsUnspecified() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(w.bind, 0))
	}
	return d
}

// isSelf reports whether the address is this agent's own gossip port.
func (w *wire) isSelf(a netip.AddrPort) bool {
	if a == w.advertise {
		return true
	}
	if a.Port() != w.advertise.Port() {
		return false
	}
	if !w.bind.IsUnspecified() {
		return a.Addr() == w.bind
	}
	return slices.Contains(hostAddrs(), a.Addr()) || a.Addr().IsLoopback() || a.Addr().IsUnspecified()
}

// Shutdown closes the sockets, ends every dial and stream, and waits until the wire's goroutines have ended.
func (w *wire) Shutdown() error {
	w.cancel()
	err := errors.Join(w.udp.Close(), w.tcp.Close())
	w.pumped.Wait()
	return err
}

// stream is a connection that the wire keeps track of. Memberlist reads from it only what the guard has
// read and passed.
type stream struct {
	net.Conn
	wire    *wire
	place   *place
	head    []byte      // bytes that passed the guard and that memberlist has not read yet
	whole   bool        // the guard has read the whole message
	bad     atomic.Bool // it brought something other than gossip of this cluster
	untrack func() bool
	once    sync.Once
}

// Read returns what passed the guard. On a stream that memberlist opened, Read waits for the whole
// answer, until the deadline that memberlist has set.
func (s *stream) Read(p []byte) (int, error) {
	if !s.whole {
		message, f := s.wire.guard.answer(s.Conn, s.place)
		if f != nil {
			if f.kind.ofKey() {
				s.wire.suspect(f, addrOf(s))
			}
			return 0, f
		}
		s.place.trust()
		s.head, s.whole = message, true
	}
	if len(s.head) == 0 {
		return 0, io.EOF // each side sends only one message
	}
	n := copy(p, s.head)
	s.head = s.head[n:]
	return n, nil
}

// Write closes the stream after an error, since memberlist does not close it if writing the label failed.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

func (s *stream) Close() error {
	err := s.Conn.Close()
	s.once.Do(func() {
		s.untrack()
		s.place.leave(s.bad.Load())
	})
	return err
}
