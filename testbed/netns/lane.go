package netns

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// maxQueued bounds the packets that wait on one lane.
	maxQueued = 1000
	// maxBacklog bounds how long a packet may wait for its turn under Link.Rate.
	maxBacklog = 2 * time.Second
	// heldBack is by how much Reorder delays a packet, besides half the link's delay.
	heldBack = 2 * time.Millisecond
)

// lane is the way from one host to another. All its instants are of one monotonic clock, which
// may begin anywhere.
type lane struct {
	mu     sync.Mutex
	link   Link
	rng    *rand.Rand
	free   time.Duration // when Link.Rate allows the next packet to leave
	last   time.Duration // the latest arrival so far, without packets that Reorder holds back
	queued int           // packets of this lane that wait in the switch
}

// fate has an instant of arrival for each copy of a packet: none, one or two.
type fate struct {
	at [2]time.Duration
	n  int
}

// judge decides the fate of a packet sent now. It counts copies that have to wait as queued.
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

// pace returns when Link.Rate allows a packet to leave, or false if it would wait longer than maxBacklog.
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

// chance reports whether a random fault hits. It draws a number only if the fault is on, so that a
// fault that is off does not change the numbers of other faults.
func (l *lane) chance(share float64) bool { return share > 0 && l.rng.Float64() < share }

// arrived records that a copy has left the queue, and reports whether to deliver this copy. If the
// link was cut meanwhile, the copy is lost.
func (l *lane) arrived() (deliver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
	return !l.link.Cut
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

// Link is what happens to packets on their way from one host to another. The
// zero value loses nothing and delays nothing.
type Link struct {
	Delay     time.Duration // the least delay, one way
	Jitter    time.Duration // up to this much more delay, evenly distributed; keeps the order
	Loss      float64       // share of the packets lost, 0 to 1
	Duplicate float64       // share of the packets that arrive twice, 0 to 1
	// Reorder is the share of the packets, 0 to 1, that are held back for another 2 ms and
	// half a Delay, so that later packets overtake them.
	Reorder float64
	Rate    int64 // in bytes of IP packets per second; 0: no limit
	Cut     bool  // nothing arrives, silently
	// Port closes one port, of TCP and UDP: packets to or from it do not arrive. 0 closes
	// none.
	Port uint16
}

const maxDelay = time.Minute

func (l Link) Validate() error {
	for name, share := range map[string]float64{"loss": l.Loss, "duplicate": l.Duplicate, "reorder": l.Reorder} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("check link: %s %v: want a share between 0 and 1", name, share)
		}
	}
	switch {
	case l.Delay < 0 || l.Delay > maxDelay:
		return fmt.Errorf("check link: delay %s: want 0s to %s", l.Delay, maxDelay)
	case l.Jitter < 0 || l.Jitter > maxDelay:
		return fmt.Errorf("check link: jitter %s: want 0s to %s", l.Jitter, maxDelay)
	case l.Rate < 0:
		return fmt.Errorf("check link: rate %d: want bytes per second, 0 for no limit", l.Rate)
	}
	return nil
}

// closes reports whether an IPv4 packet is lost because it is to or from the closed port.
func (l Link) closes(packet []byte) bool {
	const tcp, udp = 6, 17
	header := int(packet[0]&0xf) * 4
	if l.Port == 0 || len(packet) < header+4 || packet[9] != tcp && packet[9] != udp {
		return false
	}
	return binary.BigEndian.Uint16(packet[header:]) == l.Port || binary.BigEndian.Uint16(packet[header+2:]) == l.Port
}

const MaxHosts = 200
