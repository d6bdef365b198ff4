package transport

import (
	"context"
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
// A handshake takes each side about a millisecond of a processor. When hundreds
// share one, all of them take longer than a handshake may, all are given up, and
// the work was for nothing: agents that start together would keep each other
// from ever being connected. So few are begun at a time, and the others wait in
// a line, where they cost nothing. How many follows from how long they take.
type handshakes struct {
	slow time.Duration // one that takes longer says that there are too many

	mu       sync.Mutex
	limit    int // between handshakesFew and handshakesMany
	underWay int
	doubtful int // of those under way
	waiting  []*handshake
	peak     int // the most that were ever under way
}

// handshake is one that waits or is under way.
type handshake struct {
	first bool // before all that are not
	// doubtful says that the last one with this peer timed out. Of such there
	// are never more than half as many as there may be: peers that are frozen
	// don't keep the others waiting.
	doubtful bool
	may      chan struct{} // closed when it may begin
	began    time.Time
}

func newHandshakes(greet time.Duration) *handshakes {
	return &handshakes{slow: greet / 2, limit: handshakesFirst}
}

// begin waits until the handshake may begin, or ctx ends. After nil the caller
// must call end.
func (h *handshakes) begin(ctx context.Context, first, doubtful bool) (*handshake, error) {
	one := &handshake{first: first, doubtful: doubtful, may: make(chan struct{})}
	h.mu.Lock()
	at := slices.IndexFunc(h.waiting, func(w *handshake) bool { return first && !w.first })
	if at < 0 {
		at = len(h.waiting)
	}
	h.waiting = slices.Insert(h.waiting, at, one)
	h.admit()
	h.mu.Unlock()
	select {
	case <-one.may:
		return one, nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	at = slices.Index(h.waiting, one)
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
	case one.doubtful: // says something of its peer only
		h.doubtful--
	case timedOut:
		h.limit = max(handshakesFew, h.limit/2)
	case took > h.slow:
		h.limit = max(handshakesFew, h.limit-1)
	case took < h.slow/2:
		h.limit = min(handshakesMany, h.limit+1)
	}
	h.underWay--
	h.admit()
}

// admit lets those begin that may, for who holds the lock.
func (h *handshakes) admit() {
	h.waiting = slices.DeleteFunc(h.waiting, func(w *handshake) bool {
		if h.underWay >= h.limit || w.doubtful && h.doubtful >= h.limit/2 {
			return false
		}
		h.underWay++
		h.peak = max(h.peak, h.underWay)
		if w.doubtful {
			h.doubtful++
		}
		w.began = time.Now()
		close(w.may)
		return true
	})
}
