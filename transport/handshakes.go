package transport

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"

	"github.com/doyen-election/doyen/internal/door"
)

const (
	// handshakesFirst is how many handshakes may be under way until their speed is
	// known. After that the limit moves between handshakesFew and handshakesMany.
	handshakesFirst = 8
	handshakesFew   = 4
	handshakesMany  = 64
)

// handshakes bounds how many handshakes are under way at once, in one direction.
//
// A handshake costs each side about a millisecond of a processor. If hundreds of handshakes share one
// processor, all exceed their time limit and fail: agents that start together would never be connected.
// So only a few run at a time, and the others wait in a queue. The faster they are, the more may run.
type handshakes struct {
	slow time.Duration                     // a handshake that takes longer shows that too many run
	late func(due time.Time) time.Duration // how much time has passed since the instant due; replaced in tests

	mu       sync.Mutex
	limit    int // between handshakesFew and handshakesMany
	underWay int
	doubtful int // how many of those under way are doubtful
	waiting  []*handshake
	begun    int // how many inbound handshakes ever started
	sources  map[netip.Addr]source
	peak     int  // the most that were ever under way at once
	resting  bool // no handshake of the urgency `later` may start now
	only     bool // until onlyTill, only handshakes of the urgency `first` start
	onlyTill time.Time
}

// handshake is a handshake that waits or is under way.
type handshake struct {
	urgency func() urgency // may change while the handshake waits
	// doubtful: the last handshake with this peer, or from this address, timed out. At most half of the
	// handshakes under way are doubtful, so that frozen peers don't keep the others waiting.
	doubtful bool
	from     netip.Addr    // the source of an inbound handshake; else not valid
	at       func() place  // what is known of that address
	paced    bool          // it had the urgency `later` when it started, so a rest follows
	may      chan struct{} // closed when the handshake may start
	began    time.Time
}

// source is an address that inbound handshakes come from.
type source struct {
	underWay int
	turn     int  // the number of its last handshake that started, counted over all sources; 0: none yet
	doubtful bool // its last handshake that ended had timed out
}

// limit/shareOf is the most handshakes under way from an address that one member has. So a silent stranger
// who can use that address does not keep the others out.
const shareOf = 4

// share is how many handshakes from the address may be under way, if the limit for all addresses is the given
// one. The share of an address that several members have grows with their part of all members: with less,
// members that start together would time out in the queue.
func (p place) share(limit int) int {
	most := max(1, limit/shareOf)
	if p.peers > 1 {
		most = max(most, limit*p.peers/p.of)
	}
	return most
}

// urgency decides in which order handshakes start.
type urgency int32

const (
	later  urgency = iota - 1 // after all others, with a rest after each
	inTurn                    // before those of `later`, after those of `first`
	first                     // before all others
)

// always returns u. The method value u.always is for handshakes whose urgency does not change.
func (u urgency) always() urgency { return u }

func newHandshakes(greet time.Duration) *handshakes {
	return &handshakes{slow: greet / 2, limit: handshakesFirst, late: time.Since, sources: map[netip.Addr]source{}}
}

// begin waits until the handshake may start, or ctx ends. If it returns no error, the caller must call
// end.
func (h *handshakes) begin(ctx context.Context, u func() urgency, doubtful bool) (*handshake, error) {
	return h.wait(ctx, &handshake{urgency: u, doubtful: doubtful, may: make(chan struct{})})
}

// answer does the same as begin, for an inbound handshake. The addresses take turns, however many handshakes each has
// waiting.
func (h *handshakes) answer(ctx context.Context, from netip.Addr, at func() place) (*handshake, error) {
	return h.wait(ctx, &handshake{urgency: func() urgency { return urgencyOf(at().first, false) }, from: from, at: at, may: make(chan struct{})})
}

// onlyMost bounds the time in which only handshakes of the urgency `first` start.
const onlyMost = 10 * time.Second

// favour starts to hold back all handshakes but those of the urgency `first`, or stops that if `on` is false. It stops
// by itself onlyMost after the first call.
func (h *handshakes) favour(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on && h.onlyTill.IsZero() {
		h.onlyTill = time.Now().Add(onlyMost)
		time.AfterFunc(onlyMost, h.look)
	}
	h.only = on
	h.admit()
}

// favours reports whether only handshakes of the urgency `first` may start now. The caller holds the lock.
func (h *handshakes) favours() bool { return h.only && time.Now().Before(h.onlyTill) }

// closed reports whether a handshake from an unknown address has to wait too, and places are kept for voters alone.
func (h *handshakes) closed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.favours()
}

func (h *handshakes) wait(ctx context.Context, one *handshake) (*handshake, error) {
	h.mu.Lock()
	h.waiting = append(h.waiting, one)
	h.admit()
	h.mu.Unlock()
	select {
	case <-one.may:
		return one, nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	at := slices.Index(h.waiting, one)
	if at >= 0 {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
	h.mu.Unlock()
	if at < 0 { // it was admitted at the moment when ctx ended
		h.end(one, false)
	}
	return nil, context.Cause(ctx)
}

// end makes room for the next handshake.
func (h *handshakes) end(one *handshake, timedOut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	took := time.Since(one.began)
	switch {
	case one.doubtful: // it is slow because of its peer, not because too many run
		h.doubtful--
	case timedOut:
		h.limit = max(handshakesFew, h.limit/2)
	case took > h.slow:
		h.limit = max(handshakesFew, h.limit-1)
	case took < h.slow/2:
		h.limit = min(handshakesMany, h.limit+1)
	}
	if one.paced {
		h.rest(took)
	}
	h.underWay--
	if one.from.IsValid() {
		h.leave(one.from, timedOut)
	}
	h.admit()
}

// leave records how a handshake from that address ended. The caller holds the lock. The number of
// remembered addresses is bounded: those that are not doubtful are forgotten first.
func (h *handshakes) leave(from netip.Addr, timedOut bool) {
	s := h.sources[from]
	s.underWay--
	s.doubtful = timedOut
	h.sources[from] = s
	if len(h.sources) > door.Unproven {
		maps.DeleteFunc(h.sources, func(_ netip.Addr, s source) bool { return s.underWay == 0 && !s.doubtful })
	}
	if len(h.sources) > door.Unproven && s.underWay == 0 {
		delete(h.sources, from)
	}
}

// admit starts the handshakes that may begin. The caller holds the lock.
func (h *handshakes) admit() {
	for h.underWay < h.limit {
		at := h.next()
		if at < 0 {
			return
		}
		one := h.waiting[at]
		h.waiting = slices.Delete(h.waiting, at, at+1)
		if one.from.IsValid() {
			s := h.sources[one.from]
			one.doubtful = s.doubtful
			s.underWay++
			h.begun++
			s.turn = h.begun
			h.sources[one.from] = s
		}
		if one.urgency() == later {
			h.resting, one.paced = true, true
		}
		h.underWay++
		h.peak = max(h.peak, h.underWay)
		if one.doubtful {
			h.doubtful++
		}
		one.began = time.Now()
		close(one.may)
	}
}

// next returns the index of the handshake that is to start next, -1 if none may. It takes the most urgent;
// among equals, one from the address whose last handshake started longest ago; among these, the oldest.
func (h *handshakes) next() int {
	at, best, turn := -1, later, 0
	for i, w := range h.waiting {
		u, last := w.urgency(), h.sources[w.from].turn
		if (at < 0 || u > best || u == best && last < turn) && h.mayBegin(w, u) {
			at, best, turn = i, u, last
		}
	}
	return at
}

func (h *handshakes) mayBegin(w *handshake, u urgency) bool {
	from := h.sources[w.from] // empty for a handshake that this agent started
	crowded := (w.doubtful || from.doubtful) && h.doubtful >= h.limit/2
	hasShare := w.from.IsValid() && from.underWay >= w.at().share(h.limit)
	return !crowded && !hasShare && !(u < first && h.favours()) && !(u == later && h.resting)
}

const (
	// restMin is the shortest rest after a handshake of the urgency `later`.
	restMin = 5 * time.Millisecond
	// restFactor: the rest after a slow handshake lasts restFactor times as long as the handshake. If this
	// process wakes from the rest more than restLate too late, a second rest lasts restFactor times the delay.
	restLate   = 5 * time.Millisecond
	restFactor = 16
	restMost   = 5 * time.Second
)

// rest makes handshakes of the urgency `later` wait after one of them has ended. The wait is longer if that
// handshake or this process was slow. On a machine that is busy because many agents start, the connections
// needed for agreement come first. The caller holds the lock.
func (h *handshakes) rest(took time.Duration) {
	pause := restMin
	if took > h.slow/4 {
		pause = min(restFactor*took, restMost)
	}
	due := time.Now().Add(pause)
	time.AfterFunc(pause, func() {
		if late := h.late(due); late > restLate {
			time.AfterFunc(min(restFactor*late, restMost), h.rested)
			return
		}
		h.rested()
	})
}

func (h *handshakes) rested() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resting = false
	h.admit()
}

// look starts the handshakes that may start now; it is called after the urgency of some has changed.
func (h *handshakes) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admit()
}

// patient is a security transport whose inbound handshakes wait for their turn.
type patient struct {
	sec.SecureTransport
	known  func(netip.Addr) place
	line   *handshakes
	within time.Duration // how long a handshake may take
}

// SecureInbound waits for its turn if the connection comes from a member's address. Other connections
// don't wait, since anybody could fill their queue: only the doorman limits them. But while voters go first,
// all others wait.
func (p patient) SecureInbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	from := addrOf(c.RemoteAddr()).Addr()
	at := func() place { return p.known(from) }
	if at().peers == 0 && !p.line.closed() {
		return p.secure(ctx, c, id)
	}
	turn, err := p.line.answer(ctx, from, at)
	if err != nil {
		return nil, err
	}
	s, err := p.secure(ctx, c, id)
	p.line.end(turn, timedOut(err))
	return s, err
}

func (p patient) secure(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	return p.SecureTransport.SecureInbound(ctx, c, id)
}

// timedOut reports whether the error means that a time limit has passed.
func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
