package transport

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// handshakesFirst is how many handshakes may be under way until their speed
	// is known, handshakesFew and handshakesMany between what their number moves.
	handshakesFirst = 8
	handshakesFew   = 4
	handshakesMany  = 64
)

// handshakes bounds how many handshakes are under way at once, in one direction.
//
// A handshake takes each side about a millisecond of a processor. When hundreds share one, all
// exceed their time limit and fail: agents that start together would never be connected. So
// only a few are started at a time, and the others wait in a queue. How many depends on how
// long they take.
type handshakes struct {
	slow time.Duration                     // one that takes longer shows that there are too many
	late func(due time.Time) time.Duration // how late it is now; replaced in tests

	mu       sync.Mutex
	limit    int // between handshakesFew and handshakesMany
	underWay int
	doubtful int // of those under way
	waiting  []*handshake
	begun    int // inbound ones, ever
	sources  map[netip.Addr]source
	peak     int  // the most that were ever under way
	resting  bool // none of those that can wait begins
}

// handshake is one that waits or is under way.
type handshake struct {
	urgency func() urgency // it may change while it waits
	// doubtful: the last one with this peer timed out. At most half of the places are for
	// these: peers that are frozen don't keep the others waiting.
	doubtful bool
	from     netip.Addr    // where an inbound one comes from
	at       place         // what was known of it
	paced    bool          // those that can wait rest after it
	may      chan struct{} // closed when it may begin
	began    time.Time
}

// source is an address that inbound handshakes come from.
type source struct {
	underWay int
	turn     int  // the number of the last one that began, of all; 0: none yet
	doubtful bool // the last one that ended timed out
}

// shareOf is which part of those under way may come from the address of one member:
// who can use it does not keep the others out by saying nothing.
const shareOf = 4

// share is how many of so many may be under way from the address. Where several
// members share one, they have as large a part as they are of all: with less, those
// that start together would time out in the line.
func (p place) share(limit int) int {
	most := max(1, limit/shareOf)
	if p.peers > 1 {
		most = max(most, limit*p.peers/p.of)
	}
	return most
}

// urgency is in which order handshakes begin.
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

// answer is begin of an inbound handshake, for which all of its address get their
// turn together.
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
	if at < 0 { // it may, just now
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
	case one.doubtful: // that is about its peer only
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

// leave records how one from that address ended; the caller holds the lock. What is
// known of addresses is bounded; addresses without a doubt are forgotten first.
func (h *handshakes) leave(from netip.Addr, timedOut bool) {
	s := h.sources[from]
	s.underWay--
	s.doubtful = timedOut
	h.sources[from] = s
	if len(h.sources) > maxPending {
		maps.DeleteFunc(h.sources, func(_ netip.Addr, s source) bool { return s.underWay == 0 && !s.doubtful })
	}
	if len(h.sources) > maxPending && s.underWay == 0 {
		delete(h.sources, from)
	}
}

// admit starts those that may start. The caller holds the lock.
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

// next returns which is to begin next, -1 if none may: of the most urgent that of
// the address whose turn was longest ago, of these the oldest.
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
	from := h.sources[w.from] // nothing for one that this agent began
	switch {
	case (w.doubtful || from.doubtful) && h.doubtful >= h.limit/2,
		w.from.IsValid() && from.underWay >= w.at.share(h.limit),
		u == later && h.resting:
		return false
	}
	return true
}

const (
	// restMin is from the end of one handshake that can wait to the next.
	restMin = 5 * time.Millisecond
	// restFactor is how many times as long as one took, that was slow, and as this
	// process was late, if it was, the rest lasts; restMost bounds it.
	restLate   = 5 * time.Millisecond
	restFactor = 16
	restMost   = 5 * time.Second
)

// rest has the less urgent ones wait after one that took so long, and longer if that, or this
// process, was slow: on a machine that is busy with the start of many agents, the connections
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

// look records that the urgency of some may have changed.
func (h *handshakes) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admit()
}
