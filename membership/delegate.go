package membership

import (
	"bytes"
	"cmp"
	"maps"
	"net/netip"
	"slices"
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
	nodes  map[string]*listed // what memberlist lists, by node
	kept   time.Duration      // for how long memberlist lists a dead node
}

// listed is what is kept of a node in memberlist's list.
type listed struct {
	sighting
	leaves   bool          // it has announced that it leaves
	rtt      time.Duration // of the last probe that it answered
	answered time.Time     // when that was
}

// sighting is a node as memberlist lists it. Memberlist has no call for that: Members mixes
// alive with suspect, omits the dead, and returns pointers into what memberlist changes.
type sighting struct {
	node   string
	addr   netip.AddrPort
	meta   []byte
	status Status
	since  time.Time
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
		opened: map[string]opened{}, nodes: map[string]*listed{},
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

// offer sends what there is room for.
func offer[T any](c chan<- T, v T) {
	select {
	case c <- v:
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
		offer(d.forged, hint{cause: CauseSignature, name: displayName(n.Name), addr: nodeAddr(n), text: err.Error()})
		return err
	}
	if n.Name != d.self && d.live.Load() >= maxMembers {
		return errFull
	}
	return nil
}

func (d *delegate) NotifyJoin(n *memberlist.Node)   { d.live.Add(1); d.saw(n, Alive) }
func (d *delegate) NotifyLeave(n *memberlist.Node)  { d.live.Add(-1); d.saw(n, Dead) }
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.saw(n, Alive) }

// saw keeps how memberlist lists a node from now on.
func (d *delegate) saw(n *memberlist.Node, status Status) {
	d.mu.Lock()
	k := d.nodes[n.Name]
	if k == nil {
		k = &listed{}
		d.nodes[n.Name] = k
	}
	k.leaves = k.leaves && k.status == Alive // else it comes back
	if status == Dead && k.leaves {
		status = Left
	}
	k.sighting = sighting{node: n.Name, addr: nodeAddr(n), meta: bytes.Clone(n.Meta), status: status, since: time.Now()}
	d.mu.Unlock()
	offer(d.poke, struct{}{})
}

// left takes an announcement of a node that leaves, before memberlist gets it. Memberlist does
// not say whether a node left or died.
func (d *delegate) left(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil {
		k.leaves = true
	}
}

// seen returns all nodes that memberlist lists, dead ones included for a while.
func (d *delegate) seen(now time.Time) []sighting {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]sighting, 0, len(d.nodes))
	for node, s := range d.nodes {
		if s.status != Alive && now.Sub(s.since) > d.kept {
			delete(d.nodes, node)
			continue
		}
		all = append(all, s.sighting)
	}
	slices.SortFunc(all, func(a, b sighting) int { return cmp.Compare(a.node, b.node) })
	return all
}

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
	if k := d.nodes[n.Name]; k != nil {
		k.rtt, k.answered = rtt, time.Now()
	}
}

// answered returns the last round trip to the node, and when it was; zero: none is known.
func (d *delegate) answered(node string) (rtt time.Duration, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil {
		return k.rtt, k.answered
	}
	return 0, time.Time{}
}

// forget drops what is kept of nodes that memberlist no longer lists.
func (d *delegate) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.opened, func(node string, _ opened) bool { return d.nodes[node] == nil })
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
