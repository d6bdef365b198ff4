package membership

import (
	"bytes"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate has the functions that memberlist calls back. Memberlist then holds its own
// lock, so they don't block or call memberlist: they copy, poke the loop and return.
type delegate struct {
	notary *notary
	self   string // this agent's gossip name
	meta   atomic.Pointer[[]byte]
	live   atomic.Int64  // nodes memberlist counts as alive or suspect
	poke   chan struct{} // one slot: something changed
	forged chan hint     // bounded, lossy: a forgery is gossiped again
	slow   *suspicion    // nil: a list that suspects nobody

	mu     sync.Mutex
	opened map[string]opened
	pings  map[string]ping // the last one answered, by node
}

// ping is the last probe that a node answered.
type ping struct {
	rtt      time.Duration
	at       time.Time // of the answer, else when the node came into the list
	answered time.Time // zero: no answer yet
}

// opened is the outcome of verifying a node's advertisement. It is kept because the same
// advertisement arrives again and again.
type opened struct {
	meta   []byte
	member Member
	err    error
}

// maxOpened bounds the cache; dead nodes and forgeries take room in it too.
const maxOpened = 2 * maxMembers

func newDelegate(n *notary, self string) *delegate {
	return &delegate{
		notary: n, self: self,
		poke: make(chan struct{}, 1), forged: make(chan hint, 16),
		opened: map[string]opened{}, pings: map[string]ping{},
	}
}

// open verifies the node's advertisement, unless it is the last one verified.
func (d *delegate) open(node string, meta []byte) (Member, error) {
	d.mu.Lock()
	known, ok := d.opened[node]
	d.mu.Unlock()
	if ok && bytes.Equal(known.meta, meta) {
		return known.member, known.err
	}
	m, err := d.notary.open(node, meta)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.opened) >= maxOpened {
		for name := range d.opened { // any one: a miss costs a verification
			delete(d.opened, name)
			break
		}
	}
	if len(node) <= 128 { // a longer one is not a gossip name
		d.opened[node] = opened{meta: bytes.Clone(meta), member: m, err: err}
	}
	return m, err
}

func (d *delegate) changed() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// NotifyAlive keeps two kinds of nodes out of memberlist's list. A node that is not signed
// could replace a member's advertisement, or fill the list. For a node with other versions,
// memberlist would refuse whole exchanges.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if d.slow != nil {
		d.slow.adapt(time.Now(), d.live.Load()) // nodes are announced all the time
	}
	if said := [...]byte{n.PMin, n.PMax, n.PCur, n.DMin, n.DMax, n.DCur}; string(said[:]) != versions {
		return errVersions // the guard has reported it
	}
	if _, err := d.open(n.Name, n.Meta); err != nil {
		select {
		case d.forged <- hint{cause: CauseSignature, name: displayName(n.Name), addr: nodeAddr(n), text: err.Error()}:
		default:
		}
		return err
	}
	if n.Name != d.self && d.live.Load() >= maxMembers {
		return errFull
	}
	return nil
}

func (d *delegate) NotifyJoin(*memberlist.Node)   { d.live.Add(1); d.changed() }
func (d *delegate) NotifyLeave(*memberlist.Node)  { d.live.Add(-1); d.changed() }
func (d *delegate) NotifyUpdate(*memberlist.Node) { d.changed() }

// NodeMeta returns this agent's advertisement. Memberlist would panic if it were longer than
// the limit; notary.seal has made sure that it is not.
func (d *delegate) NodeMeta(limit int) []byte {
	meta := d.meta.Load()
	if meta == nil || len(*meta) > limit {
		return nil
	}
	return *meta
}

func (d *delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, _ []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.pings[n.Name]; ok || len(d.pings) < maxMembers {
		now := time.Now()
		d.pings[n.Name] = ping{rtt: rtt, at: now, answered: now}
	}
}

// expect has the silence of a newly listed node count from now on.
func (d *delegate) expect(node string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.pings[node]; !ok && len(d.pings) < maxMembers {
		d.pings[node] = ping{at: now}
	}
}

// measured returns the last round trip to the node.
func (d *delegate) measured(node string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pings[node].rtt
}

// answeredSince reports whether the node has answered a probe of this agent after that
// time.
func (d *delegate) answeredSince(node string, at time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pings[node].answered.After(at)
}

// longestSilent returns the last answer of the node whose last answer is the longest ago;
// now if there is no node.
func (d *delegate) longestSilent(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := now
	for _, p := range d.pings {
		if p.at.Before(first) {
			first = p.at
		}
	}
	return first
}

// forget drops what is kept of nodes that memberlist no longer lists.
func (d *delegate) forget(listed func(node string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node := range d.pings {
		if !listed(node) {
			delete(d.pings, node)
		}
	}
	for node := range d.opened {
		if !listed(node) {
			delete(d.opened, node)
		}
	}
}

// Nothing but membership travels by gossip.

func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}
func (d *delegate) AckPayload() []byte              { return nil }

// nodeAddr returns the node's gossip address, zero if the node has no valid one.
func nodeAddr(n *memberlist.Node) netip.AddrPort {
	addr, ok := netip.AddrFromSlice(n.Addr)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), n.Port)
}

// displayName is the agent's name within a gossip name. It cuts the name off: a peer can
// make one as long as it likes.
func displayName(node string) string {
	for i, r := range node {
		if r == '#' || i >= 63 {
			return node[:i]
		}
	}
	return node
}
