package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/multiformats/go-multistream"

	"github.com/doyen-election/doyen/election"
)

// protocolID names the stream between two agents. What is said on it has a
// version of its own, in the hello, so that a difference can be told in words.
const protocolID = "/doyen"

// outcome is how an attempt at a session ended.
type outcome struct {
	attempt uint64
	held    election.BootID // what this side said it counts as connected
	wire    *wire           // nil if err is not
	theirs  helloFrame
	err     error
}

func (o outcome) close() {
	if o.wire != nil {
		_ = o.wire.stream.Conn().Close() // not needed after all
	}
}

// try opens a stream, greets the peer on it and reports the outcome to the loop.
func (l *link) try(ctx context.Context, o outcome, open func(context.Context) (network.Stream, error)) {
	o.wire, o.theirs, o.err = l.meet(ctx, o.held, open)
	var refused *refusal
	if errors.As(o.err, &refused) {
		part(o.wire)
	}
	if o.err != nil {
		o.close()
		o.wire = nil
	}
	select {
	case l.outcomes <- o:
	case <-l.ctx.Done():
		o.close()
	}
}

func (l *link) meet(ctx context.Context, held election.BootID, open func(context.Context) (network.Stream, error)) (*wire, helloFrame, error) {
	s, err := open(ctx)
	if err != nil {
		return nil, helloFrame{}, err
	}
	w := newWire(s)
	// An attempt that is abandoned lets go of its connection at once.
	release := context.AfterFunc(ctx, func() { _ = s.Conn().Close() })
	if err := s.SetDeadline(time.Now().Add(l.t.limits.greet)); err != nil {
		return w, helloFrame{}, fmt.Errorf("set deadline: %w", err)
	}
	theirs, err := greet(w, l.t.hello.frame(held), func(h Hello) error { return l.t.accept(l.id, h) })
	if !release() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return w, theirs, err
	}
	return w, theirs, s.SetDeadline(time.Time{})
}

// open dials the peer and opens the stream of the two.
func (t *Transport) open(ctx context.Context, p peer.ID, addr netip.AddrPort) (network.Stream, error) {
	c, err := t.host.dial(ctx, p, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	s, err := c.NewStream(ctx)
	if err != nil {
		_ = c.Close() // of no use without a stream
		return nil, fmt.Errorf("open stream: %w", err)
	}
	release := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer release()
	if err := s.SetDeadline(time.Now().Add(t.limits.greet)); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if err := multistream.SelectProtoOrFail(protocolID, s); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("agree on protocol: %w", err)
	}
	return s, nil
}

// receive takes a stream that a peer opened to its link. It is the swarm's
// stream handler and runs in a goroutine of the stream's.
func (t *Transport) receive(s network.Stream) {
	if !t.enter() {
		_ = s.Conn().Close() // so close all others
		return
	}
	defer t.running.Done()
	l := t.link(idOf(s.Conn().RemotePeer()))
	if l == nil || l.dials {
		_ = s.Conn().Close() // the gater let it in before the list changed
		return
	}
	mux := multistream.NewMultistreamMuxer[string]()
	mux.AddHandler(protocolID, nil)
	if s.SetDeadline(time.Now().Add(t.limits.greet)) != nil {
		return
	}
	if _, _, err := mux.Negotiate(s); err != nil {
		_ = s.Conn().Close()
		return
	}
	select {
	case l.arrivals <- s:
	case <-l.ctx.Done():
		_ = s.Conn().Close()
	}
}

// expect closes an inbound connection that does not become a session in time.
func (t *Transport) expect(c network.Conn) {
	if c.Stat().Direction != network.DirInbound {
		return
	}
	time.AfterFunc(2*t.limits.greet, func() {
		if l := t.link(idOf(c.RemotePeer())); l != nil {
			if s := l.current(); s != nil && s.wire.stream.Conn() == c {
				return
			}
		}
		_ = c.Close()
	})
}

// report keeps why an attempt failed, and tells of it if it is a refusal that
// was not told yet. It reports whether it is one.
func (l *link) report(err error) bool {
	var refused *refusal
	var mismatch sec.ErrPeerIDMismatch
	e := Refused{Peer: l.id}
	switch {
	case errors.As(err, &refused):
		e.Name, e.ByPeer, e.Err = refused.name, refused.byPeer, refused.err
		if refused.byPeer {
			l.t.count.refused[refusedByPeer].Add(1)
		} else {
			l.t.count.refused[refuseHello].Add(1)
		}
	case errors.As(err, &mismatch):
		e.Err = fmt.Errorf("its address is that of another peer, %s", mismatch.Actual)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err.Error()
	if e.Err == nil {
		return false
	}
	e.Addr = l.addr
	if l.told != err.Error() && !l.removed && l.t.box.put(e) {
		l.told = err.Error()
	}
	return true
}

// probe asks whether anybody still listens at the peer's address, for the side
// that can't redial: the kernel of a host whose agent died refuses at once.
func (l *link) probe() {
	addr, _ := l.where()
	l.t.running.Add(1)
	go func() {
		defer l.t.running.Done()
		ctx, cancel := context.WithTimeout(l.ctx, l.t.grace)
		defer cancel()
		select {
		case l.probes <- knock(ctx, addr):
		case <-l.ctx.Done():
		}
	}()
}

// knock returns an error only if nobody listens there. That there was no answer
// in time says nothing.
func knock(ctx context.Context, addr netip.AddrPort) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr.String())
	if err == nil {
		// A process that is dying may still have its listener open, and resets
		// what it has not accepted. A living one says hello or nothing.
		if deadline, ok := ctx.Deadline(); ok && c.SetReadDeadline(deadline) == nil {
			_, err = c.Read(make([]byte, 1))
		}
		_ = c.Close() // it was only a question
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return nil
}
