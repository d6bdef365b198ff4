package transport

import (
	"cmp"
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
	slow time.Duration                     // one that takes longer says that there are too many
	late func(due time.Time) time.Duration // how late it is now; a test says so itself

	mu       sync.Mutex
	limit    int // between handshakesFew and handshakesMany
	underWay int
	doubtful int // of those under way
	waiting  []*handshake
	peak     int  // the most that were ever under way
	resting  bool // none of those that can wait begins
}

// handshake is one that waits or is under way.
type handshake struct {
	urgency func() urgency // it may change while it waits
	// doubtful says that the last one with this peer timed out. Of such there
	// are never more than half as many as there may be: peers that are frozen
	// don't keep the others waiting.
	doubtful bool
	paced    bool          // those that can wait rest after it
	may      chan struct{} // closed when it may begin
	began    time.Time
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
	return &handshakes{slow: greet / 2, limit: handshakesFirst, late: time.Since}
}

// begin waits until the handshake may begin, or ctx ends. After nil the caller
// must call end.
func (h *handshakes) begin(ctx context.Context, u func() urgency, doubtful bool) (*handshake, error) {
	one := &handshake{urgency: u, doubtful: doubtful, may: make(chan struct{})}
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
	case one.doubtful: // says something of its peer only
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
	h.admit()
}

// admit lets those begin that may, for who holds the lock.
func (h *handshakes) admit() {
	slices.SortStableFunc(h.waiting, func(a, b *handshake) int { return cmp.Compare(b.urgency(), a.urgency()) })
	h.waiting = slices.DeleteFunc(h.waiting, func(w *handshake) bool {
		switch {
		case h.underWay >= h.limit, w.doubtful && h.doubtful >= h.limit/2, w.urgency() == later && h.resting:
			return false
		case w.urgency() == later:
			h.resting, w.paced = true, true
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

const (
	// restMin is from the end of one handshake that can wait to the next.
	restMin = 5 * time.Millisecond
	// restFactor is how many times as long as one took, that was slow, and as this
	// process was late, if it was, the rest lasts; restMost bounds it.
	restLate   = 5 * time.Millisecond
	restFactor = 16
	restMost   = 5 * time.Second
)

// rest has those that can wait do so after one that took so long, and for longer if
// that, or this process, was slow: where many agents share a machine that is busy
// with their start, those that are needed to agree go on meanwhile. It is for who
// holds the lock.
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

// look takes note that the urgency of some may have changed.
func (h *handshakes) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admit()
}
