package transport

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/doyen-election/doyen/election"
)

const (
	// grace is how long a broken connection may take to be replaced before it
	// counts as lost.
	grace = 100 * time.Millisecond
	// spareMax bounds how long a new connection is spared from suspicion.
	spareMax = 2 * time.Second
)

// link is everything about one peer, for as long as the peer is on the allow-list. Its loop
// is the one goroutine that decides. Attempts, probes, the reader and the writer do one
// blocking thing each and report to the loop.
//
// Invariant: held is the run for which the consumer was given Connected and not yet Lost, 0 if
// there is none. While session is set, held is not 0.
type link struct {
	t       *Transport
	id      election.PeerID
	pid     peer.ID
	dials   bool         // this side dials and the other waits; else the reverse
	urgency atomic.Int32 // of dials
	ctx     context.Context
	stop    context.CancelFunc

	arrivals  chan *wire // streams the peer opened
	outcomes  chan outcome
	probes    chan error
	suspected chan struct{} // of capacity 1
	moved     chan struct{} // of capacity 1: addr changed
	woken     chan struct{} // of capacity 1: the peer reported that it is there (see wake)

	mu      sync.Mutex
	addr    netip.AddrPort
	session *session
	held    election.RunID
	level   uint64 // the feature level of the run held
	removed bool
	failure string // of the last attempt
	told    string // the refusal last reported

	// Only the loop uses the rest.
	attempt  uint64 // number of the last one started
	abandon  context.CancelFunc
	busy     bool // that attempt has not ended
	began    time.Time
	prompt   time.Time     // when redial last dialled at once; zero: not lately
	roused   time.Time     // when this side last dialled because the peer had reported itself
	interval time.Duration // from the last dial to the next
	cause    error         // why the last session ended
	dark     bool          // the last dial was not answered at all
	timeouts int           // attempts in a row that took too long
	turned   int           // attempts in a row that the peer, or its host, ended
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
	if !l.dials && l.t.hello.isLater() {
		l.wake()
	}
	for {
		session := l.current()
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

// end stops all that belongs to the link. The loss is already reported, by remove.
func (l *link) end() {
	l.retry.Stop()
	l.patience.Stop()
	l.stop()
	l.abandon()
	if s := l.take(); s != nil {
		s.close(errClosing)
	}
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

// take returns the session and leaves none.
func (l *link) take() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.session
	l.session = nil
	return s
}

// dial begins an attempt to connect, unless one is under way.
func (l *link) dial() {
	if l.busy || l.current() != nil {
		return
	}
	addr, dark, timeouts := l.where(), l.dark, l.timeouts
	l.t.count.dials.Add(1)
	l.begin(l.claim(), func(ctx context.Context, o *outcome) { l.call(ctx, addr, dark, timeouts, o) })
}

// answer begins an attempt on a stream that the peer opened. The peer has given up its
// earlier attempts, and so does this side.
func (l *link) answer(w *wire) {
	l.abandon()
	l.begin(l.claim(), func(ctx context.Context, o *outcome) {
		ctx, cancel := context.WithTimeout(ctx, l.t.limits.greet)
		defer cancel()
		l.meet(ctx, w, o)
	})
}

// begin runs an attempt in a goroutine; the attempt fills in the outcome.
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

// claim is the run of the peer that this side names as connected. A peer of 0.2.0 can't tell
// the lives of a lineage apart, and may still count a former one as connected. So a later life
// names none to it: then both sides report a new connection.
func (l *link) claim() election.RunID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.level == 0 && l.t.hello.isLater() {
		return 0
	}
	return l.held
}

// conclude takes the outcome of an attempt.
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
		// The peer won't report this connection, since both counted each other as connected. But
		// here the loss has been reported meanwhile: only another hello can say so.
		o.close()
		l.again(0)
	default:
		l.adopt(o)
	}
}

// resumes reports whether the hellos show that each side still counts the other's run as
// connected. Then neither side reports the new connection.
func (l *link) resumes(o outcome) bool {
	return o.held == o.theirs.hello().Run && o.theirs.Held == l.t.hello.Run
}

// adopt makes the connection of a successful attempt the session.
func (l *link) adopt(o outcome) {
	theirs, resumed := o.theirs.hello(), l.resumes(o)
	s := newSession(o.wire)

	l.mu.Lock()
	if l.removed {
		l.mu.Unlock()
		o.close()
		return
	}
	if !resumed {
		if l.held != 0 {
			l.t.box.put(Lost{Peer: l.id, Err: errRestarted})
		}
		l.t.box.put(Connected{Peer: l.id, Hello: theirs})
	}
	old := l.session
	l.session, l.held, l.level, l.failure, l.told = s, theirs.Run, theirs.Level, "", ""
	l.mu.Unlock()

	if resumed {
		l.t.count.resumed.Add(1)
	}
	if old != nil {
		old.close(errReplaced)
	}
	l.patience.Stop()
	l.start(s)
}

// start runs the session's reader and writer.
func (l *link) start(s *session) {
	written := make(chan struct{})
	l.t.running.Go(func() { s.write(&l.t.count, written) })
	l.t.running.Go(func() { s.read(func(m election.Message) { l.deliver(s, m) }, &l.t.count, written) })
}

// deliver puts a message into the inbox, unless its session is no longer the link's.
func (l *link) deliver(s *session, m election.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return
	}
	l.t.count.messagesIn.Add(1) // counted before the consumer can take the message
	if !l.t.box.put(Message{Peer: l.id, Message: m}) {
		l.t.count.messagesIn.Add(^uint64(0))
		l.t.count.dropped[dropInboxFull].Add(1)
	}
}

// broken handles the end of the session. Unless a new one follows soon, it counts as lost.
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

// suspect closes the connection, if there is one, and reports its loss. It spares one so
// young that the peer may not have sent anything over it yet: then the silence was that of
// the connection before.
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

// move dials a new address, and forgets what was learnt of the old one. A connection that
// works is kept.
func (l *link) move() {
	if l.current() == nil && l.dials {
		l.afresh()
	}
}

// afresh dials at once, and forgets the outcome of earlier dials.
func (l *link) afresh() {
	l.abandon()
	l.attempt++ // the outcome of the abandoned attempt is ignored
	l.busy, l.interval, l.dark, l.timeouts, l.turned = false, redialMin, false, 0, 0
	l.again(0)
}

// again sets the time of the next dial; the side that waits has none.
func (l *link) again(in time.Duration) {
	if l.dials {
		l.retry.Reset(in)
	}
}

// lose reports Lost if Connected was reported.
func (l *link) lose(err error) {
	l.patience.Stop()
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

// remove ends the link. Nothing of it is reported once remove has returned.
func (l *link) remove() {
	l.mu.Lock()
	l.untell(errRemoved)
	l.removed = true
	s := l.session
	l.session = nil
	l.mu.Unlock()
	if s != nil {
		s.close(errRemoved)
	}
	l.stop()
}
