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
// A handshake takes each side about a millisecond of a processor. If hundreds of handshakes
// share one processor, all exceed their time limit and fail: agents that start together
// would never be connected. So only a few run at a time, and the others wait in a queue. How
// many run depends on how long they take.
type handshakes struct {
	slow time.Duration                     // a handshake that takes longer shows that too many run
	late func(due time.Time) time.Duration // how long ago due was; replaced in tests

	mu       sync.Mutex
	limit    int // between handshakesFew and handshakesMany
	underWay int
	doubtful int // how many of those under way are doubtful
	waiting  []*handshake
	begun    int // inbound ones, ever
	sources  map[netip.Addr]source
	peak     int  // the most that were ever under way at once
	resting  bool // no handshake of urgency later may begin
}

// handshake is a handshake that waits or is under way.
type handshake struct {
	urgency func() urgency // may change while the handshake waits
	// doubtful: the last handshake with this peer timed out. Doubtful ones are at most half of
	// those under way, so that frozen peers don't keep the others waiting.
	doubtful bool
	from     netip.Addr    // where an inbound one comes from
	at       place         // what was known of that address
	paced    bool          // it has urgency later: a rest follows
	may      chan struct{} // closed when it may begin
	began    time.Time
}

// source is an address that inbound handshakes come from.
type source struct {
	underWay int
	turn     int  // number, among all inbound ones, of the last that began; 0: none yet
	doubtful bool // the last one that ended timed out
}

// shareOf limits the address of one member to a quarter of the handshakes under way: a silent
// stranger who can use that address does not keep the others out.
const shareOf = 4

// share is how many of limit handshakes may come from the address. Several members that
// share an address get the same part of the limit as they are of all members: with less,
// members that start together would time out in the line.
func (p place) share(limit int) int {
	most := max(1, limit/shareOf)
	if p.peers > 1 {
		most = max(most, limit*p.peers/p.of)
	}
	return most
}

// urgency decides in which order handshakes begin.
type urgency int32

const (
	later  urgency = iota - 1 // after all others, with a rest after each
	inTurn                    // one after the other
	first                     // before all others
)

// always is an urgency that does not change.
func (u urgency) always() urgency { return u }

func newHandshakes(greet time.Duration) *handshakes {
	return &handshakes{slow: greet / 2, limit: handshakesFirst, late: time.Since, sources: map[netip.Addr]source{}}
}

// begin waits until the handshake may begin, or ctx ends. After nil the caller
// must call end.
func (h *handshakes) begin(ctx context.Context, u func() urgency, doubtful bool) (*handshake, error) {
	return h.wait(ctx, &handshake{urgency: u, doubtful: doubtful, may: make(chan struct{})})
}

// answer is begin for an inbound handshake. Addresses get their turns one after another,
// however many handshakes each has.
func (h *handshakes) answer(ctx context.Context, from netip.Addr, at place) (*handshake, error) {
	return h.wait(ctx, &handshake{urgency: urgencyOf(at.first, false).always, from: from, at: at, may: make(chan struct{})})
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
	if at < 0 { // it was allowed to begin just now
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
	case one.doubtful: // that it is slow is its peer's fault, and does not show that too many run
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

// leave records how a handshake from that address ended; the caller holds the lock. What is
// kept of addresses is bounded; those that are not doubtful are forgotten first.
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

// next returns the handshake that is to begin next, -1 if none may. It is one of the most
// urgent; of these, one from the address whose turn was longest ago; of these, the oldest.
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
	from := h.sources[w.from] // empty for a handshake that this agent began
	switch {
	case (w.doubtful || from.doubtful) && h.doubtful >= h.limit/2,
		w.from.IsValid() && from.underWay >= w.at.share(h.limit),
		u == later && h.resting:
		return false
	}
	return true
}

const (
	// restMin is the rest after a handshake of urgency later.
	restMin = 5 * time.Millisecond
	// restFactor is how many times as long as a slow handshake the rest after it lasts. If
	// this process is late by more than restLate, a second rest lasts as many times that.
	restLate   = 5 * time.Millisecond
	restFactor = 16
	restMost   = 5 * time.Second
)

// rest has handshakes of urgency later wait after one of them, and longer if that one, or this
// process, was slow. On a machine that is busy with the start of many agents, the connections
// that are needed to agree come first. The caller holds the lock.
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

// look starts what may begin now that the urgency of some handshakes may have changed.
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

// SecureInbound waits for its turn if the connection comes from an address of a member. Others
// don't wait, since anybody could fill their queue: only the doorman limits them.
func (p patient) SecureInbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	from := addrOf(c.RemoteAddr()).Addr()
	at := p.known(from)
	if at.peers == 0 {
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

// timedOut reports whether the error is a time limit that passed.
func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
