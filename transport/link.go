package transport

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/doyen-election/doyen/election"
)

const (
	// grace is how long a broken connection may stay without a replacement before it counts as lost.
	grace = 100 * time.Millisecond
	// spareMax bounds how long Suspect spares a new connection.
	spareMax = 2 * time.Second
)

// link holds everything about one peer, for as long as the peer is on the allow-list. Only its method loop,
// in one goroutine, decides. Attempts, probes, the reader and the writer each do one blocking thing and
// report it to the loop.
//
// Invariant: held is the run for which the consumer got Connected but not yet Lost; 0: there is none.
// While session is set, held is not 0.
type link struct {
	t       *Transport
	id      election.PeerID
	pid     peer.ID
	dials   bool         // this side dials and the other waits; if false, the reverse
	wakes   bool         // the peer may dial only rarely now, so this side dials once
	guest   bool         // SetPeers has not named the peer (see Admission); t.mu guards it
	brought *wire        // the stream with which a guest came; nil: it is not a guest
	urgency atomic.Int32 // how urgent this side's dials are
	ctx     context.Context
	stop    context.CancelFunc

	arrivals  chan *wire // streams that the peer opened
	outcomes  chan outcome
	probes    chan error
	suspected chan struct{} // of capacity 1
	moved     chan struct{} // of capacity 1; it has an element after relocate changed something
	woken     chan struct{} // of capacity 1; an element means that the peer reported itself (see wake)

	mu      sync.Mutex
	addr    netip.AddrPort
	session *session
	held    election.RunID
	level   uint64 // the feature level of the held run's agent
	removed bool
	told    string // the refusal that was reported last

	// Only the loop uses the fields below.
	met      bool   // an attempt to connect has succeeded before
	attempt  uint64 // the number of the attempt that started last
	abandon  context.CancelFunc
	busy     bool // the last attempt has not ended
	began    time.Time
	prompt   time.Time     // when redial last dialled at once; zero: not recently
	roused   time.Time     // when this side last dialled because the peer had reported itself
	interval time.Duration // from the start of the last dial to the next
	cause    error         // why the last session ended
	dark     bool          // the last dial was not answered at all
	timeouts int           // attempts in a row that took too long
	turned   int           // attempts in a row that the peer, or its host, ended by hanging up
	retry    *time.Timer
	patience *time.Timer
}

func newLink(t *Transport, id peer.ID, p Peer) *link {
	l := &link{
		t: t, id: p.ID, pid: id, addr: p.Addr, dials: t.self < p.ID,
		arrivals: make(chan *wire), outcomes: make(chan outcome), probes: make(chan error),
		suspected: make(chan struct{}, 1), moved: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		interval: redialMin, abandon: func() {},
		retry: time.NewTimer(0), patience: time.NewTimer(t.grace),
	}
	l.urgency.Store(int32(urgencyOf(p.First, p.Later)))
	l.patience.Stop()
	if !l.dials {
		l.retry.Stop()
	}
	l.ctx, l.stop = context.WithCancel(t.ctx)
	return l
}

func (l *link) loop() {
	defer l.end()
	switch {
	case l.brought != nil:
		l.answer(l.brought)
	case l.wakes && !l.dials, l.visits():
		l.dial() // a peer that knows this agent refuses, and then dials itself
	}
	for {
		session := l.current()
		if session == nil && l.part() {
			return
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.t.closing:
			if session != nil {
				session.finish(l.ctx)
			}
			return
		case <-l.retry.C:
			l.dial()
		case w := <-l.arrivals:
			l.answer(w)
		case o := <-l.outcomes:
			l.conclude(o)
		case <-session.over():
			l.broken(session)
		case <-l.patience.C:
			l.lose(l.cause)
		case err := <-l.probes:
			if err != nil && l.current() == nil {
				l.lose(l.cause)
			}
		case <-l.suspected:
			l.suspect()
		case <-l.moved:
			l.move()
		case <-l.woken:
			l.rouse()
		}
	}
}

// end stops everything of the link. If the link was removed, remove has reported the loss.
func (l *link) end() {
	l.retry.Stop()
	l.patience.Stop()
	l.stop()
	l.abandon()
	l.take().close(errClosing)
}

func (l *link) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// connected returns the session, if there is one, and the feature level of its peer.
func (l *link) connected() (*session, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.level
}

// take removes the session from the link and returns it.
func (l *link) take() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.session
	l.session = nil
	return s
}

// dial starts an attempt to connect, unless one is under way.
func (l *link) dial() {
	if l.busy || l.current() != nil {
		return
	}
	addr, dark, timeouts := l.where(), l.dark, l.timeouts
	l.t.count.dials.Add(1)
	l.begin(l.claim(), func(ctx context.Context, o *outcome) { l.call(ctx, addr, dark, timeouts, o) })
}

// answer starts an attempt on a stream that the peer opened. The peer has given up its earlier attempts, so
// this side abandons what belongs to them.
func (l *link) answer(w *wire) {
	l.abandon()
	l.begin(l.claim(), func(ctx context.Context, o *outcome) {
		ctx, cancel := context.WithTimeout(ctx, l.t.limits.greet)
		defer cancel()
		l.meet(ctx, w, Pass{}, o)
	})
}

// begin runs an attempt in a goroutine. The attempt fills in the outcome.
func (l *link) begin(held election.RunID, attempt func(context.Context, *outcome)) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.attempt++
	l.abandon, l.busy, l.began = cancel, true, time.Now()
	o := outcome{attempt: l.attempt, held: held}
	l.t.running.Go(func() {
		defer cancel()
		attempt(ctx, &o)
		l.tell(o)
	})
}

func (l *link) urgent() urgency { return urgency(l.urgency.Load()) }

func (l *link) where() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// claim is the peer's run that this side's hello names as connected. A peer of 0.2.0 can't distinguish
// the lives of a lineage, and may still count a former life of this agent as connected. So a later life
// names no run to it: then both sides report a new connection.
func (l *link) claim() election.RunID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.level == 0 && l.t.hello.isLater() {
		return 0
	}
	return l.held
}

// conclude handles the outcome of an attempt.
func (l *link) conclude(o outcome) {
	if o.attempt != l.attempt {
		o.close()
		return
	}
	l.busy = false
	l.dark = o.dark
	if !o.tooSlow {
		l.timeouts = 0
	}
	if !o.hungUp {
		l.turned = 0
	}
	switch {
	case o.err != nil:
		l.failed(o)
	case l.resumes(o) && o.held != l.claim():
		// The hellos made this connection a mere replacement, so the peer won't report it. But since then
		// this side has reported the loss: only a new attempt, with a new hello, can show that to the
		// peer.
		o.close()
		l.again(0)
	default:
		l.adopt(o)
	}
}

// resumes reports whether the hellos show that each side still counts the other's run as connected. Then
// the new connection is a replacement, and neither side reports it.
func (l *link) resumes(o outcome) bool {
	return o.held == o.theirs.hello().Run && o.theirs.Held == l.t.hello.Run
}

// adopt makes the connection of a successful attempt the session.
func (l *link) adopt(o outcome) {
	l.met = true
	theirs := o.theirs.hello()
	s, guest := newSession(o.wire), l.asGuest(o.theirs.Pass)

	l.mu.Lock()
	if l.removed {
		l.mu.Unlock()
		o.close()
		return
	}
	if !l.resumes(o) {
		if l.held != 0 {
			l.t.box.put(Lost{Peer: l.id, Err: errRestarted})
		}
		l.t.box.put(Connected{Peer: l.id, Hello: theirs, Pass: guest})
	}
	old := l.session
	l.session, l.held, l.level, l.told = s, theirs.Run, theirs.Level, ""
	l.mu.Unlock()

	old.close(errReplaced)
	l.patience.Stop()
	l.start(s)
}

// start runs the session's reader and writer.
func (l *link) start(s *session) {
	written := make(chan struct{})
	l.t.running.Go(func() { s.write(&l.t.count, written) })
	l.t.running.Go(func() { s.read(func(m election.Message) { l.deliver(s, m) }, &l.t.count, written) })
}

// deliver puts a message into the inbox, unless the link has another session by now.
func (l *link) deliver(s *session, m election.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return
	}
	if !l.t.box.put(Message{Peer: l.id, Message: m}) {
		l.t.count.dropped[dropInboxFull].Add(1)
	}
}

// broken handles the end of the session. Unless a new session follows soon, the connection counts as
// lost.
func (l *link) broken(s *session) {
	l.take()
	l.cause = s.err
	l.patience.Reset(l.t.grace)
	if !l.dials {
		l.probe()
		return
	}
	l.redial()
}

// suspect closes the connection, if there is one, and reports its loss. It spares a connection so young
// that the peer may not have sent anything over it yet: the silence was that of an earlier connection.
func (l *link) suspect() {
	if s := l.current(); s != nil {
		if time.Since(s.began) < min(2*l.t.hello.Heartbeat, spareMax) {
			return
		}
		l.take()
		s.close(errSuspected)
		l.redial()
	}
	l.lose(errSuspected)
}

// move handles a new address of the peer, or the news that the peer votes now. If no connection exists, the side that dials
// dials at once, and forgets how dials to the old address ended.
func (l *link) move() {
	if l.dials && l.current() == nil {
		l.afresh()
	} else if l.visits() {
		l.dial()
	}
}

// afresh dials at once, and forgets how earlier dials ended.
func (l *link) afresh() {
	l.abandon()
	l.attempt++ // so that conclude ignores the abandoned attempt
	l.busy, l.interval, l.dark, l.timeouts, l.turned = false, redialMin, false, 0, 0
	l.again(0)
}

// again sets the time of the next dial. The side that waits dials too, but rarely, if the peer
// may have to be asked to let this agent in (visits).
func (l *link) again(in time.Duration) {
	switch {
	case l.dials:
		l.retry.Reset(in)
	case l.visits():
		pause := min(redialRefused<<min(l.turned, 8), redialStranger)
		l.retry.Reset(pause/2 + rand.N(pause))
	}
}

// visits reports whether this side dials although the peer has to dial: a voter that does not know this
// agent may let it in. A voter that knows this agent refuses, and dials.
func (l *link) visits() bool {
	return !l.dials && l.urgent() == first && l.t.admission.Load() != nil
}

// lose reports Lost if Connected was reported before.
func (l *link) lose(err error) {
	l.patience.Stop()
	if l.visits() {
		l.again(0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.untell(err)
}

// untell is lose for a caller that holds the lock.
func (l *link) untell(err error) {
	if l.held == 0 {
		return
	}
	l.held = 0
	l.t.box.put(Lost{Peer: l.id, Err: err})
}

// remove ends the link. After its return, nothing is reported about the link.
func (l *link) remove() {
	l.mu.Lock()
	l.untell(errRemoved)
	l.removed = true
	s := l.session
	l.session = nil
	l.mu.Unlock()
	s.close(errRemoved)
	l.stop()
}
