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
	// These bound the streams from one source: an IPv4 address or an IPv6 /64. All agents of one machine share
	// the loopback interface, so it may have more.
	maxFromSource   = 8
	maxFromLoopback = 64
	// badRest is how long a stream's place stays taken after the stream brought something other than
	// gossip of this cluster.
	badRest = time.Second
	maxBad  = 4096

	// maxUnread bounds the bytes in memory of all streams that have not shown the cluster key yet. Of
	// these bytes, unreadForMembers are reserved for streams of members.
	maxUnread        = 8 << 20
	unreadForMembers = 2 << 20
	// A stream may bring streamBase bytes, and streamPerMember more for each member of the cluster.
	streamBase      = 64 << 10
	streamPerMember = 2 << 10
	// maxLong bounds how many streams at a time may bring more, up to maxStream each. An agent that knows
	// nobody yet needs that: a list of maxMembers agents takes almost 1 MiB.
	maxStream      = 2 << 20
	maxLong        = 3
	longForMembers = 1
)

var (
	errCrowded  = errors.New("too many streams are being served")
	errLong     = errors.New("it announces more bytes than an exchange in this cluster needs")
	errFull     = errors.New("the cluster has as many members as an agent keeps")
	errUnproven = errors.New("it has not answered, and many others have not either")
	errUnread   = errors.New("too many bytes wait to be read")
)

// admission decides which streams are let in, and how much they may put into memory before they
// have shown the cluster key. Memberlist alone would let in any number.
type admission struct {
	members atomic.Int64 // how many members gossip knows
	streams *door.Places[netip.Prefix]
	bytes   *door.Places[struct{}] // in memory, of streams that have not shown the key
	long    *door.Places[struct{}] // streams that have not shown the key and are longer than usual
	bad     *door.Places[struct{}] // places that stay taken for badRest
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
	source  netip.Prefix // not valid if this agent opened the stream
	member  bool
	mu      sync.Mutex
	unread  int // bytes in memory that are not checked yet
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

// opened returns a place for a stream that this agent opened. Only its bytes are bounded.
func (a *admission) opened() *place { return &place{admission: a, member: true} }

// announce returns nil if a message of n bytes may come, else the reason why not.
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

// grow reserves memory for n bytes; it is called before they are read.
func (p *place) grow(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes.Enter(struct{}{}, n, 0, p.member) != nil {
		return errUnread
	}
	p.unread += n
	return nil
}

// trust stops counting the bytes of a stream that has shown the key.
func (p *place) trust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes.Leave(struct{}{}, p.unread)
	if p.lengthy {
		p.long.Leave(struct{}{}, 1)
	}
	p.unread, p.lengthy = 0, false
}

// leave gives the place back. If bad is set, the stream brought something other than gossip of this
// cluster. Then its source has one place less for badRest.
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
