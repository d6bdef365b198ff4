package netns

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// maxQueued bounds the packets that wait on one lane.
	maxQueued = 1000
	// maxBacklog bounds how long a packet may wait for its turn under Link.Rate.
	maxBacklog = 2 * time.Second
	// heldBack is how much later Reorder makes a packet, besides half the delay.
	heldBack = 2 * time.Millisecond
)

// lane is the way from one host to another. All its instants are of one monotonic clock, which
// may begin anywhere.
type lane struct {
	mu     sync.Mutex
	link   Link
	rng    *rand.Rand
	free   time.Duration // when the rate lets the next packet go
	last   time.Duration // when the latest packet in order arrives
	queued int           // packets of this lane that wait in the switch
}

// fate is when the copies of a packet arrive: none, one or two.
type fate struct {
	at [2]time.Duration
	n  int
}

// judge decides what becomes of a packet sent now. It counts copies that have to wait as
// queued.
func (l *lane) judge(now time.Duration, packet []byte) fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link.Cut || l.link.closes(packet) || l.chance(l.link.Loss) {
		return fate{}
	}
	at, ok := l.pace(now, len(packet))
	if !ok || l.queued >= maxQueued {
		return fate{}
	}
	at += l.link.Delay
	if l.link.Jitter > 0 {
		at += time.Duration(l.rng.Int64N(int64(l.link.Jitter)))
	}
	if l.chance(l.link.Reorder) {
		at = max(at, l.last) + heldBack + l.link.Delay/2
	} else {
		at = max(at, l.last) // jitter alone must not change the order
		l.last = at
	}
	f := fate{at: [2]time.Duration{at, at}, n: 1}
	if l.chance(l.link.Duplicate) {
		f.n = 2
	}
	if at > now {
		l.queued += f.n
	}
	return f
}

// pace returns when the rate lets a packet go. It fails if that is too late.
func (l *lane) pace(now time.Duration, size int) (time.Duration, bool) {
	if l.link.Rate == 0 {
		return now, true
	}
	start := max(now, l.free)
	if start-now > maxBacklog {
		return 0, false
	}
	l.free = start + time.Duration(float64(size)/float64(l.link.Rate)*float64(time.Second))
	return l.free, true
}

// chance draws a number only if the fault is on. So faults that are off do not change the
// numbers that the others get.
func (l *lane) chance(share float64) bool { return share > 0 && l.rng.Float64() < share }

// arrived records that a queued copy has left the queue. It reports whether to deliver it: if
// the link was cut meanwhile, the copy is lost.
func (l *lane) arrived() (deliver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
	return !l.link.Cut
}

// refuse records that a copy, counted as queued, found the switch full.
func (l *lane) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
}

// set changes the link for packets sent from now on. They may overtake packets that are on
// their way.
func (l *lane) set(link Link, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link, l.free, l.last = link, now, now
}

func (l *lane) get() Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.link
}
