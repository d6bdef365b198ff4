package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// maxInbound bounds the streams served at once; memberlist has a goroutine
	// for each, and would take any number.
	maxInbound = 128
	// maxStream bounds what is read from one stream: the state of maxMembers
	// takes less than 1 MiB, memberlist alone would buffer 20.
	maxStream = 4 << 20
)

var errWireClosed = errors.New("membership is closed")

// wire is memberlist's network, bounded and closable: it limits inbound streams,
// and ends dials and streams at shutdown, on which memberlist's goroutines would
// otherwise hang about.
type wire struct {
	sockets   *sockets
	advertise netip.AddrPort
	bind      netip.Addr
	dialLimit time.Duration
	streams   chan net.Conn
	done      chan struct{}
	ctx       context.Context // of dials; ends at shutdown
	cancel    context.CancelFunc
	pumped    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	open    map[*stream]struct{}
	inbound int
}

// listen binds UDP and TCP on one port.
func listen(cfg Config, dialLimit time.Duration) (*wire, error) {
	sockets, err := bind(cfg.Bind, cfg.Port)
	if err != nil {
		return nil, err
	}
	w := &wire{
		sockets:   sockets,
		advertise: netip.AddrPortFrom(cfg.advertised(), sockets.port()),
		bind:      cfg.Bind.Unmap(),
		dialLimit: dialLimit,
		streams:   make(chan net.Conn),
		done:      make(chan struct{}),
		open:      map[*stream]struct{}{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.pumped.Add(1)
	go w.pump()
	return w, nil
}

// pump admits inbound streams as long as there is room, and closes the others:
// whoever meant it will come again.
func (w *wire) pump() {
	defer w.pumped.Done()
	w.sockets.accept(func(c net.Conn) {
		s, err := w.track(c, true)
		if err != nil {
			_ = c.Close()
			return
		}
		w.hand(s)
	})
}

// hand gives memberlist a stream to serve.
func (w *wire) hand(s *stream) {
	select {
	case w.streams <- s:
	case <-w.done:
		_ = s.Close()
	}
}

func (w *wire) track(c net.Conn, inbound bool) (*stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errWireClosed
	}
	if inbound {
		if w.inbound >= maxInbound {
			return nil, fmt.Errorf("%d streams are being served", maxInbound)
		}
		w.inbound++
	}
	s := &stream{Conn: c, wire: w, inbound: inbound, left: maxStream}
	w.open[s] = struct{}{}
	return s, nil
}

func (w *wire) StreamCh() <-chan net.Conn { return w.streams }

func (w *wire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.advertise.Addr().AsSlice(), int(w.advertise.Port()), nil
}

func (w *wire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return w.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (w *wire) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: min(timeout, w.dialLimit)}
	c, err := d.DialContext(w.ctx, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	s, err := w.track(c, false)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return s, nil
}

// loop returns a stream to memberlist's own end of this very wire, with no
// socket between.
func (w *wire) loop() (net.Conn, error) {
	near, far := net.Pipe()
	n, err := w.track(near, false)
	if err != nil {
		return nil, err
	}
	f, err := w.track(far, false)
	if err != nil {
		return nil, err
	}
	w.hand(f)
	return n, nil
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
	for _, own := range hostAddrs() {
		if own == a.Addr() {
			return true
		}
	}
	return a.Addr().IsLoopback() || a.Addr().IsUnspecified()
}

// Shutdown closes the sockets, ends every dial and stream, and waits for the
// listeners to end.
func (w *wire) Shutdown() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	open := make([]*stream, 0, len(w.open))
	for s := range w.open {
		open = append(open, s)
	}
	w.mu.Unlock()
	w.cancel()
	for _, s := range open {
		_ = s.Close()
	}
	close(w.done)
	err := w.sockets.close()
	w.pumped.Wait()
	return err
}

// stream is a connection that the wire knows of.
type stream struct {
	net.Conn
	wire    *wire
	inbound bool
	left    int // bytes that may yet be read; used by the one reader
	once    sync.Once
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if len(p) > s.left {
		p = p[:s.left]
	}
	n, err := s.Conn.Read(p)
	s.left -= n
	return n, err
}

// Write closes a stream that failed: memberlist forgets to when it is the
// label that could not be written.
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
		s.wire.mu.Lock()
		defer s.wire.mu.Unlock()
		delete(s.wire.open, s)
		if s.inbound {
			s.wire.inbound--
		}
	})
	return err
}
