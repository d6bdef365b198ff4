package netns

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// maxQueued bounds the packets that wait on one lane.
	maxQueued = 1000
	// maxBacklog bounds how long a packet may wait for a rate to let it go.
	maxBacklog = 2 * time.Second
	// heldBack is what Reorder adds to a packet, besides half the delay.
	heldBack = 2 * time.Millisecond
)

// lane is the way from one host to another. Its instants are of one monotonic
// clock, from wherever that begins.
type lane struct {
	mu     sync.Mutex
	link   Link
	rng    *rand.Rand
	free   time.Duration // when the rate lets the next packet go
	last   time.Duration // when the latest packet in order arrives
	queued int           // packets in the switch's hands
}

// fate is when the copies of a packet arrive: none, one or two.
type fate struct {
	at [2]time.Duration
	n  int
}

// judge decides what becomes of a packet sent now. It counts the copies as
// queued if they have to wait.
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
		at = max(at, l.last) // jitter alone overtakes nothing
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

// pace returns when the rate lets a packet go.
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

// chance draws only for faults that are on, so that one fault's numbers do not
// depend on the others being off.
func (l *lane) chance(share float64) bool { return share > 0 && l.rng.Float64() < share }

// arrived records that a queued copy left the queue. A link that was cut meanwhile
// takes what was on its way.
func (l *lane) arrived() (deliver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
	return !l.link.Cut
}

// refuse records that a queued copy found the switch full.
func (l *lane) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
}

// set changes the link for packets sent from now on, which may overtake those
// that are on their way.
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
