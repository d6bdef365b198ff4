package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/internal/door"
)

const (
	// A source is an IPv4 address or an IPv6 network of 64 bits. All agents of
	// one machine share the loopback interface.
	maxFromSource   = 8
	maxFromLoopback = 64
	// badRest is how long the place of a stream stays taken after it brought something
	// other than gossip of this cluster.
	badRest = time.Second
	maxBad  = 4096

	// maxUnread bounds the bytes in memory of all streams that have not shown the
	// cluster key yet. The last unreadForMembers are for members.
	maxUnread        = 8 << 20
	unreadForMembers = 2 << 20
	// A stream may bring streamBase bytes, and streamPerMember for each member.
	streamBase      = 64 << 10
	streamPerMember = 2 << 10
	// maxLong streams at a time may bring up to maxStream: an agent that knows nobody
	// yet has to hear of maxMembers, which takes less than 1 MiB.
	maxStream      = 2 << 20
	maxLong        = 3
	longForMembers = 1
)

var (
	errCrowded = errors.New("too many streams are being served")
	errLong    = errors.New("it announces more bytes than an exchange in this cluster needs")
	errFull    = errors.New("the cluster has as many members as an agent keeps")
	errUnread  = errors.New("too many bytes wait to be read")
)

// admission decides which streams are let in, and how much they may put into memory before they
// have shown the cluster key. Memberlist by itself would take any number.
type admission struct {
	members atomic.Int64 // that gossip knows of
	streams *door.Places[netip.Prefix]
	bytes   *door.Places[struct{}] // of streams that have not shown the key
	long    *door.Places[struct{}] // streams among these
	bad     *door.Places[struct{}] // places in their badRest
	after   func(time.Duration, func())
}

func newAdmission() *admission {
	return &admission{
		streams: door.NewPlaces[netip.Prefix](door.Unproven, door.ForMembers),
		bytes:   door.NewPlaces[struct{}](maxUnread, unreadForMembers),
		long:    door.NewPlaces[struct{}](maxLong, longForMembers),
		bad:     door.NewPlaces[struct{}](maxBad, 0),
		after:   func(d time.Duration, f func()) { time.AfterFunc(d, f) },
	}
}

// place is what one stream takes up.
type place struct {
	*admission
	source  netip.Prefix // invalid: a stream that this agent opened
	member  bool
	mu      sync.Mutex
	unread  int // bytes
	lengthy bool
}

// enter gives an inbound stream a place, or returns why not. All addresses of the loopback
// interface are one source.
func (a *admission) enter(from netip.Addr, known bool) (*place, error) {
	source, most := door.Network(from), maxFromSource
	if from = from.Unmap(); from.IsLoopback() {
		source, most = netip.PrefixFrom(netip.IPv6Loopback(), 128), maxFromLoopback
	}
	if a.streams.Enter(source, 1, most, known) != nil {
		return nil, errCrowded
	}
	return &place{admission: a, source: source, member: known}, nil
}

// opened returns a place for a stream that this agent opened. It counts only memory.
func (a *admission) opened() *place { return &place{admission: a, member: true} }

// announce asks whether a message of so many bytes may come.
func (p *place) announce(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	usual := n <= streamBase+streamPerMember*int(p.members.Load())
	if n > maxStream || !p.lengthy && !usual && p.long.Enter(struct{}{}, 1, 0, p.member) != nil {
		return fmt.Errorf("%w: %d bytes", errLong, n)
	}
	p.lengthy = p.lengthy || !usual
	return nil
}

// grow asks for memory, before it is used.
func (p *place) grow(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes.Enter(struct{}{}, n, 0, p.member) != nil {
		return errUnread
	}
	p.unread += n
	return nil
}

// trust ends the counting of bytes: the stream has shown the key.
func (p *place) trust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes.Leave(struct{}{}, p.unread)
	if p.lengthy {
		p.long.Leave(struct{}{}, 1)
	}
	p.unread, p.lengthy = 0, false
}

// leave gives the place back. Bad is a stream that brought something other than gossip of this
// cluster: its source has one place less for badRest.
func (p *place) leave(bad bool) {
	p.trust()
	switch {
	case !p.source.IsValid():
	case bad && p.bad.Enter(struct{}{}, 1, 0, true) == nil:
		p.streams.Free(1)
		p.after(badRest, func() {
			p.bad.Leave(struct{}{}, 1)
			p.streams.Forgive(p.source, 1)
		})
	default:
		p.streams.Leave(p.source, 1)
	}
}
