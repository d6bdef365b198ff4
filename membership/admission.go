package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxInbound bounds the streams served at once. Memberlist by itself would take
	// any number, with a goroutine for each.
	maxInbound = 128
	// maxStrangers is how many streams may come from unknown addresses. The rest of
	// the places is kept for the addresses of members and seeds.
	maxStrangers = 96
	// A source is an IPv4 address or an IPv6 network of 64 bits. All agents of
	// one machine share the loopback interface.
	maxFromSource   = 8
	maxFromLoopback = 64
	// badRest is how long the place of a stream stays taken after it brought something
	// other than gossip of this cluster.
	badRest = time.Second
	maxBad  = 4096

	// maxUnread bounds the bytes in memory of all streams that have not shown the
	// cluster key yet, maxUnreadStrangers those of strangers among them.
	maxUnread          = 8 << 20
	maxUnreadStrangers = 6 << 20
	// A stream may bring streamBase bytes, and streamPerMember for each member.
	streamBase      = 64 << 10
	streamPerMember = 2 << 10
	// maxLong streams at a time may bring up to maxStream: an agent that knows nobody
	// yet has to hear of maxMembers, which takes less than 1 MiB.
	maxStream        = 2 << 20
	maxLong          = 3
	maxLongStrangers = 2
)

var (
	errCrowded = errors.New("too many streams are being served")
	errLong    = errors.New("it announces more bytes than an exchange in this cluster needs")
	errFull    = errors.New("the cluster has as many members as an agent keeps")
	errUnread  = errors.New("too many bytes wait to be read")
)

// usage is what streams take up: places, bytes of memory until they have shown the key,
// and places for long messages.
type usage struct{ places, bytes, long int }

// admission decides which streams are let in, and how much they may put into memory
// before they have shown the cluster key.
type admission struct {
	mu        sync.Mutex
	members   int // that gossip knows of
	all       usage
	strangers usage
	sources   map[netip.Prefix]int // places taken by each, also during badRest
	bad       int                  // places in their badRest
	after     func(time.Duration, func())
}

func newAdmission() *admission {
	return &admission{sources: map[netip.Prefix]int{}, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}
}

// place is what one stream takes up.
type place struct {
	admission *admission
	source    netip.Prefix // invalid: a stream that this agent opened
	stranger  bool
	bytes     int
	long      bool
}

// sourceOf is the source that an address belongs to.
func sourceOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsLoopback():
		return netip.PrefixFrom(netip.IPv6Loopback(), 128)
	case a.Is4():
		return netip.PrefixFrom(a, 32)
	}
	p, _ := a.Prefix(64) // an IPv6 address has one
	return p
}

// enter gives an inbound stream a place, or returns why not.
func (a *admission) enter(from netip.Addr, known bool) (*place, error) {
	p := &place{admission: a, source: sourceOf(from), stranger: !known}
	most := maxFromSource
	if from.Unmap().IsLoopback() {
		most = maxFromLoopback
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all.places >= maxInbound || p.stranger && a.strangers.places >= maxStrangers || a.sources[p.source] >= most {
		return nil, errCrowded
	}
	a.all.places++
	if p.stranger {
		a.strangers.places++
	}
	a.sources[p.source]++
	return p, nil
}

// opened returns a place for a stream that this agent opened. It counts only memory.
func (a *admission) opened() *place { return &place{admission: a} }

// announce asks whether a message of so many bytes may come.
func (p *place) announce(n int) error {
	a := p.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case n > maxStream:
		return fmt.Errorf("%w: %d bytes", errLong, n)
	case p.long || n <= streamBase+streamPerMember*a.members:
		return nil
	case a.all.long >= maxLong || p.stranger && a.strangers.long >= maxLongStrangers:
		return fmt.Errorf("%w: %d bytes", errLong, n)
	}
	p.long = true
	a.all.long++
	if p.stranger {
		a.strangers.long++
	}
	return nil
}

// grow asks for memory, before it is used.
func (p *place) grow(n int) error {
	a := p.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all.bytes+n > maxUnread || p.stranger && a.strangers.bytes+n > maxUnreadStrangers {
		return errUnread
	}
	p.bytes += n
	a.all.bytes += n
	if p.stranger {
		a.strangers.bytes += n
	}
	return nil
}

// trust ends the counting of bytes: the stream has shown the key.
func (p *place) trust() {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	p.free()
}

// free is called with the lock held.
func (p *place) free() {
	a := p.admission
	long := 0
	if p.long {
		long = 1
	}
	a.all.bytes -= p.bytes
	a.all.long -= long
	if p.stranger {
		a.strangers.bytes -= p.bytes
		a.strangers.long -= long
	}
	p.bytes, p.long = 0, false
}

// leave gives the place back. If the stream was bad, that is no gossip of this cluster,
// its source has one place less for badRest.
func (p *place) leave(bad bool) {
	a := p.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	p.free()
	if !p.source.IsValid() {
		return
	}
	a.all.places--
	if p.stranger {
		a.strangers.places--
	}
	if !bad || a.bad >= maxBad {
		a.vacate(p.source)
		return
	}
	a.bad++
	a.after(badRest, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.bad--
		a.vacate(p.source)
	})
}

func (a *admission) vacate(source netip.Prefix) {
	if a.sources[source]--; a.sources[source] <= 0 {
		delete(a.sources, source)
	}
}

// know sets how many members gossip knows of.
func (a *admission) know(members int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = members
}
