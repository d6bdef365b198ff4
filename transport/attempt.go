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
	held    election.RunID // the run of the peer that this side's hello named as connected
	wire    *wire          // nil if there is an error
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
		_ = o.wire.conn.Close() // the connection is not needed
	}
}

// tell passes the outcome of an attempt to the loop. It first closes the connection if the attempt
// failed.
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

// call waits for its turn, dials the peer and greets it. If dark is set, nothing answered the last dial.
// Then call first tries a bare connection outside the queue, and ends if that fails: an absent peer must not
// keep others waiting, and must be found at once when it is back.
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
	ctx, cancel := context.WithTimeout(ctx, l.within(timeouts))
	defer cancel()
	var w *wire
	if w, o.err = l.t.open(ctx, l.pid, addr); o.err == nil {
		l.meet(ctx, w, l.pass(), o)
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

// within is how long the attempt may take after that number of timeouts in a row.
func (l *link) within(timeouts int) time.Duration {
	limit := l.t.limits.within(timeouts)
	if l.urgent() == first {
		limit = max(limit, greetVoter*l.t.limits.greet/2)
	}
	return limit
}

// unanswered reports two things about a dial that failed: dark, if nothing answered at all; and late, if
// this process checked so late that it can't know that.
func (t *Transport) unanswered(err error, began time.Time) (dark, late bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || !op.Timeout() {
		return false, false
	}
	late = time.Since(began) > t.limits.connect*3/2
	return !late, late
}

// reach returns nil if something accepts a connection at the address.
func (t *Transport) reach(ctx context.Context, addr netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, t.limits.connect)
	defer cancel()
	c, err := t.host.dialer.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return fmt.Errorf("dial %s: %w", addr, err)
	}
	_ = c.Close() // the connection was only a test
	return nil
}

// meet greets the peer on the stream. pass is what this side brings if it has dialled.
func (l *link) meet(ctx context.Context, w *wire, pass Pass, o *outcome) {
	o.wire = w
	ours := l.t.greeting().frame(o.held)
	ours.Pass = pass
	// An abandoned attempt closes its connection at once.
	release := context.AfterFunc(ctx, func() { _ = w.conn.Close() })
	o.theirs, o.err = greet(o.wire, ours, func(h Hello) error { return l.t.accept(l.id, h) })
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
		_ = c.Close() // a connection without the stream is useless
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
	switch {
	case l == nil && t.admission.Load() != nil:
		t.visit(c)
		return
	case l == nil || l.dials:
		_ = c.Close() // the gater accepted the connection before the list of peers changed
		return
	}
	if w, err := t.awaitStream(l.ctx, c); err == nil {
		l.arrive(w)
	}
}

// arrive gives the link a stream that the peer opened.
func (l *link) arrive(w *wire) {
	select {
	case l.arrivals <- w:
	case <-l.ctx.Done():
		_ = w.conn.Close()
	}
}

// report puts a Refused into the mailbox if err is a new refusal. It returns whether err is a refusal.
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
	if e.Err == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Addr = l.addr
	if l.told != err.Error() && !l.removed && l.t.box.put(e) {
		l.told = err.Error()
	}
	return true
}

// probe checks whether a process still listens at the peer's address: if the agent has died, the kernel of
// its host refuses at once. Only the side that does not dial needs this.
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

// knock returns an error only if no process listens at the address. If no answer comes in time, it
// returns nil, since that proves nothing.
func (t *Transport) knock(ctx context.Context, addr netip.AddrPort) error {
	c, err := t.host.dialer.DialContext(ctx, "tcp", addr.String())
	if err == nil {
		// The listener of a dying process may still be open. Its kernel then resets connections that the
		// process has not accepted. A living process sends a hello, or nothing.
		if deadline, ok := ctx.Deadline(); ok && c.SetReadDeadline(deadline) == nil {
			_, err = c.Read(make([]byte, 1))
		}
		_ = c.Close() // the connection only served as a question
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return nil
}

const (
	// redialMin and redialMax bound the time from the start of one dial to the start of the next while
	// dials fail.
	redialMin = 50 * time.Millisecond
	redialMax = 250 * time.Millisecond
	// redialSlow bounds the random pause after an attempt that took too long. The pause lasts at least
	// half of its bound. The bound doubles with each such attempt in a row, up to redialSlowest.
	redialSlow    = 250 * time.Millisecond
	redialSlowest = 2 * time.Second
	// redialOften is how many attempts in a row a peer may end by hanging up before the pause becomes
	// redialRefused. After that the pause doubles, up to redialStranger: perhaps no agent listens there.
	// A peer that turned this agent away wakes it later (see wake).
	redialOften    = 8
	redialStranger = 16 * time.Second
	// redialRefused is the pause after the peer was reached and one side refused the other.
	redialRefused = time.Second
	// promptly is the least time between two dials that follow the end of a session at once.
	promptly = time.Second
)

// failed handles an attempt that failed.
func (l *link) failed(o outcome) {
	refused := l.report(o.err)
	l.again(l.pause(o, refused))
	if l.dials {
		l.t.count.dialsFailed.Add(1)
	}
	// The side that dials counts the connection as lost after any failed attempt, the other side only after a
	// refusal: after another failure the dialler may try again, and the probe shows if it is dead. While
	// another session exists, nothing is lost.
	if l.current() == nil && (refused || l.dials) {
		l.lose(l.cause)
	}
}

// pause returns how long to wait after the attempt that failed. A peer that can't be reached, or whose
// process is gone, is dialled often, so that it is found soon after its link heals or its process starts.
// A peer that is there but too busy gets more time. That time is random, so that not all of its peers
// come again together.
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
		most := redialStranger
		if l.met { // an agent listens there, perhaps behind a proxy that accepts while the agent is down
			most = redialRefused
		}
		pause := min(redialRefused<<min(max(0, l.turned-redialOften-1), 8), most)
		return pause/2 + rand.N(pause)
	}
	pause := max(0, l.interval-time.Since(l.began))
	l.interval = min(l.interval*3/2, redialMax)
	return pause
}

// rouse dials a peer that has reported itself, at once but no more often than other peers. A connection
// to its former life may still look open: once the end of that connection is read, redial dials at once.
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
