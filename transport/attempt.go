package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multistream"

	"github.com/doyen-election/doyen/election"
)

// protocolID names the stream between two agents. Its messages have a separate version,
// in the hello, so that a difference can be reported in words.
const protocolID = "/doyen"

// outcome is how an attempt at a session ended.
type outcome struct {
	attempt uint64
	held    election.RunID // the run that this side's hello named as connected
	wire    *wire          // nil if err is not
	theirs  helloFrame
	err     error
	// If there is an error, one of these may be set.
	dark    bool // nothing answers at the address, not even a refusal
	tooSlow bool // the peer was reached and took too long
	hungUp  bool // the peer was reached and ended the connection
}

func (o outcome) refused() bool {
	_, is := errors.AsType[*refusal](o.err)
	return is
}

func (o outcome) close() {
	if o.wire != nil {
		_ = o.wire.conn.Close() // it is not needed after all
	}
}

// tell hands the outcome of an attempt to the loop.
func (l *link) tell(o outcome) {
	if o.refused() {
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

// call waits for its turn, dials the peer and greets it. Dark: nothing answered the last dial.
// Then call first tries, without a turn, until the address accepts a connection: a peer that is
// not there must not take the turn of others, and is to be found at once when it is back.
func (l *link) call(ctx context.Context, addr netip.AddrPort, dark bool, timeouts int, o *outcome) {
	if dark {
		began := time.Now()
		if o.err = l.t.reach(ctx, addr); o.err != nil {
			o.dark, o.tooSlow = l.t.unanswered(o.err, began)
			return
		}
	}
	turn, err := l.t.dialling.begin(ctx, l.urgent, timeouts > 0)
	if err != nil {
		o.err = err
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.t.limits.within(timeouts))
	defer cancel()
	var w *wire
	if w, o.err = l.t.open(ctx, l.pid, addr); o.err == nil {
		l.meet(ctx, w, o)
	}
	o.dark, o.tooSlow = l.t.unanswered(o.err, turn.began)
	switch {
	case o.err == nil, o.dark, o.tooSlow, o.refused(), errors.Is(o.err, syscall.ECONNREFUSED):
	case timedOut(o.err), errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.tooSlow = true
	default:
		o.hungUp = true
	}
	l.t.dialling.end(turn, o.tooSlow)
}

// unanswered reports whether a dial ended because nothing answered at all, or whether
// this process was so late to check that it can't tell.
func (t *Transport) unanswered(err error, began time.Time) (dark, late bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || !op.Timeout() {
		return false, false
	}
	late = time.Since(began) > t.limits.connect*3/2
	return !late, late
}

// reach returns nil once something accepts connections at the address.
func (t *Transport) reach(ctx context.Context, addr netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, t.limits.connect)
	defer cancel()
	c, err := t.host.dialer.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return fmt.Errorf("dial %s: %w", addr, err)
	}
	_ = c.Close() // it was only a question
	return nil
}

// meet greets the peer on the stream.
func (l *link) meet(ctx context.Context, w *wire, o *outcome) {
	o.wire = w
	// An attempt that is abandoned closes its connection at once.
	release := context.AfterFunc(ctx, func() { _ = w.conn.Close() })
	o.theirs, o.err = greet(o.wire, l.t.greeting().frame(o.held), func(h Hello) error { return l.t.accept(l.id, h) })
	if !release() && !o.refused() {
		o.err = fmt.Errorf("exchange hellos: %w", context.Cause(ctx))
	}
}

// open dials the peer and opens the stream to it.
func (t *Transport) open(ctx context.Context, p peer.ID, addr netip.AddrPort) (*wire, error) {
	c, err := t.host.dial(ctx, p, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	release := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer release()
	s, err := c.OpenStream(ctx)
	if err == nil {
		err = multistream.SelectProtoOrFail(protocolID, s)
	}
	if err != nil {
		_ = c.Close() // of no use without a stream
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return newWire(c, s), nil
}

// serve accepts the connections of peers until the listener is closed.
func (t *Transport) serve() {
	for {
		c, err := t.listener.Accept()
		if err != nil {
			if !t.isClosing() {
				t.log.Error("accept no connections any more: restart this agent", "err", err)
			}
			return
		}
		t.running.Go(func() { t.receive(c) })
	}
}

// receive waits for the stream that a peer opens on its connection, and gives it to the peer's
// link.
func (t *Transport) receive(c transport.CapableConn) {
	l := t.link(idOf(c.RemotePeer()))
	if l == nil || l.dials {
		_ = c.Close() // the gater let it in before the list changed
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, t.limits.greet)
	defer cancel()
	release := context.AfterFunc(ctx, func() { _ = c.Close() })
	s, err := c.AcceptStream()
	if err == nil {
		mux := multistream.NewMultistreamMuxer[string]()
		mux.AddHandler(protocolID, nil)
		_, _, err = mux.Negotiate(s)
	}
	if err != nil || !release() {
		_ = c.Close()
		return
	}
	select {
	case l.arrivals <- newWire(c, s):
	case <-l.ctx.Done():
		_ = c.Close()
	}
}

// report keeps why an attempt failed, and sends Refused if it is a refusal that was not
// reported yet. It returns whether it is a refusal.
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
		e.Err = fmt.Errorf("its address belongs to another peer, %s", mismatch.Actual)
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

// probe asks whether a process still listens at the peer's address. The side that does not
// dial needs it. The kernel of a host whose agent died refuses at once.
func (l *link) probe() {
	addr := l.where()
	l.t.running.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.t.grace)
		defer cancel()
		select {
		case l.probes <- l.t.knock(ctx, addr):
		case <-l.ctx.Done():
		}
	})
}

// wake makes the peer, which is the side that dials, find this later life at once: it refuses
// wake's connection, and dials. Otherwise it would dial more and more rarely.
func (l *link) wake() {
	l.t.running.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.t.limits.greet)
		defer cancel()
		turn, err := l.t.dialling.begin(ctx, l.urgent, false)
		if err != nil {
			return
		}
		c, err := l.t.host.dial(ctx, l.pid, l.where())
		l.t.dialling.end(turn, false)
		if err != nil {
			return // a peer that is down dials when it starts
		}
		release := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer release()
		_, _ = c.AcceptStream() // until the peer has closed the connection: to close it first would reset it
		_ = c.Close()
	})
}

// knock returns an error only if no process listens at the address. No answer in time proves
// nothing.
func (t *Transport) knock(ctx context.Context, addr netip.AddrPort) error {
	c, err := t.host.dialer.DialContext(ctx, "tcp", addr.String())
	if err == nil {
		// The listener of a dying process may still be open; its kernel then resets connections
		// that the process has not accepted. A living process sends a hello or nothing.
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

const (
	// redialMin and redialMax bound the time from the start of one dial to the start of the
	// next, as long as dials fail.
	redialMin = 50 * time.Millisecond
	redialMax = 250 * time.Millisecond
	// redialSlow bounds the random pause after an attempt that took too long, which lasts
	// half of it or more. It doubles with each in a row, up to redialSlowest.
	redialSlow    = 250 * time.Millisecond
	redialSlowest = 2 * time.Second
	// redialOften is how many attempts in a row a peer may end by hanging up, before the
	// pause between them becomes redialRefused.
	redialOften = 8
	// redialRefused is the pause after the peer was reached and one side refused.
	redialRefused = time.Second
	// promptly is the least time between two dials at once after the end of a session.
	promptly = time.Second
)

// failed takes the outcome of an attempt that failed.
func (l *link) failed(o outcome) {
	refused := l.report(o.err)
	l.again(l.pause(o, refused))
	if l.dials {
		l.t.count.dialsFailed.Add(1)
	}
	// On the side that dials, a failed redial means that the session is lost, as a refusal
	// does. The other side relies on its probe, since the dialler may try again. While a
	// session exists, a failed attempt at another one does not end it.
	if l.current() == nil && (refused || l.dials) {
		l.lose(l.cause)
	}
}

// pause returns how long to wait after the attempt that failed. A peer that can't be
// reached, or whose process is gone, is dialled often: a link that heals, or a process that
// starts, is found at once. A peer that is there but too busy gets time. That time is
// random, so that not all its peers come again together.
func (l *link) pause(o outcome, refused bool) time.Duration {
	if o.tooSlow {
		pause := min(redialSlow<<min(l.timeouts, 8), redialSlowest)
		l.timeouts++
		return pause/2 + rand.N(pause/2)
	}
	if o.hungUp {
		l.turned++
	}
	if refused || l.turned > redialOften {
		return redialRefused/2 + rand.N(redialRefused)
	}
	pause := max(0, l.interval-time.Since(l.began))
	l.interval = min(l.interval*3/2, redialMax)
	return pause
}

// rouse dials a peer that has reported itself: at once, but no more often than other peers. A
// connection to its former life may still look open: when its end is read, redial dials at once.
func (l *link) rouse() {
	if time.Since(l.roused) < redialMin {
		return
	}
	l.roused, l.prompt = time.Now(), time.Time{}
	if l.current() == nil && !(l.busy && time.Since(l.began) < redialMin) {
		l.afresh()
	}
}

// redial dials at once, but not in a tight loop if sessions break straight away.
func (l *link) redial() {
	if time.Since(l.prompt) < promptly {
		l.again(l.interval)
		l.interval = min(l.interval*3/2, redialMax)
		return
	}
	l.prompt, l.interval = time.Now(), redialMin
	l.again(0)
}
