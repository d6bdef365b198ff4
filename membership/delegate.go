package membership

import (
	"bytes"
	"cmp"
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
	live   atomic.Int64   // nodes memberlist counts as alive or suspect
	poke   chan struct{}  // one slot: something changed
	forged chan<- Refusal // bounded, lossy: a forgery is gossiped again
	slow   *suspicion     // nil: a list that suspects nobody

	mu       sync.Mutex
	verified listed             // what was last verified
	nodes    map[string]*listed // what memberlist lists, by node
	asking   map[string]bool    // the nodes that are being asked
	kept     time.Duration      // for how long memberlist lists a dead node
}

// listed is a node as memberlist lists it. Memberlist has no call for that: Members mixes alive
// with suspect, omits the dead, and returns pointers into what memberlist changes.
type listed struct {
	Member             // as it advertises itself, with GossipAddr and Status
	node     string    // its gossip name
	meta     []byte    // its advertisement
	since    time.Time // when it got its status
	live     time.Time // when it was last listed as live, after it was not
	leaves   bool      // it has announced that it leaves
	rtt      time.Duration
	answered time.Time // when it last answered
}

const (
	// maxAsking bounds the questions under way, askTimes the questions to one node in a row.
	maxAsking = 16
	askTimes  = 5
	// patientFor is how long a node that answers nothing must be listed as live until it
	// counts as there: others must have heard it, or memberlist would list it as dead by then.
	patientFor = 2 * time.Minute
)

func newDelegate(n *notary, self string) *delegate {
	return &delegate{notary: n, self: self, poke: make(chan struct{}, 1), nodes: map[string]*listed{}, asking: map[string]bool{}}
}

// open returns the node's advertisement. It verifies it, unless it is known: the same one
// arrives again and again.
func (d *delegate) open(node string, meta []byte) (Member, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, known := range []*listed{d.nodes[node], &d.verified} {
		if known != nil && known.node == node && bytes.Equal(known.meta, meta) {
			return known.Member, nil
		}
	}
	m, err := d.notary.open(node, meta)
	if err == nil {
		d.verified = listed{Member: m, node: node, meta: bytes.Clone(meta)}
	}
	return m, err
}

// offer sends unless the channel is full.
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
		d.slow.adapt(time.Now(), d.live.Load()) // here, since memberlist calls this all the time
	}
	if said := [...]byte{n.PMin, n.PMax, n.PCur, n.DMin, n.DMax, n.DCur}; string(said[:]) != versions {
		return errVersions // the guard has reported it
	}
	if _, err := d.open(n.Name, n.Meta); err != nil {
		offer(d.forged, Refusal{Cause: CauseSignature, Name: displayName(n.Name), Addr: nodeAddr(n), Err: err})
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
	m, err := d.open(n.Name, n.Meta)
	if err != nil {
		return // memberlist lists nobody that did not pass
	}
	now := time.Now()
	d.mu.Lock()
	k := d.nodes[n.Name]
	if k == nil {
		k = &listed{node: n.Name}
		d.nodes[n.Name] = k
	}
	if status == Alive && k.Status != Alive {
		k.live = now
	}
	k.leaves = k.leaves && k.Status == Alive // a dead node that is announced has come back
	if status == Dead && k.leaves {
		status = Left
	}
	m.GossipAddr, m.Status = nodeAddr(n), status
	k.Member, k.meta, k.since = m, bytes.Clone(n.Meta), now
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

// seen returns all nodes that memberlist lists, dead ones included for a while. Of the dead, those
// that have not answered since a key was removed have left.
func (d *delegate) seen(now time.Time, removed *time.Time) []Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Member, 0, len(d.nodes))
	for node, k := range d.nodes {
		if k.Status != Alive && now.Sub(k.since) > d.kept {
			delete(d.nodes, node)
			continue
		}
		m := k.Member
		if m.Status == Dead && removed != nil && !k.answered.After(*removed) {
			m.Status = Left
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Or(byPeer(a, b), cmp.Compare(a.Lineage, b.Lineage)) })
	return all
}

// answers reports whether the node has answered since it was listed as live, or has been live for
// so long that it must be there.
func (d *delegate) answers(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.nodes[node]
	return k != nil && (k.answered.After(k.live) || time.Since(k.live) >= patientFor)
}

// ask has ping ask a node by its gossip name, unless that is under way, or many others are being
// asked. A node that answers has that name, and has the cluster key now.
func (d *delegate) ask(node string, ping func() (time.Duration, error), running *sync.WaitGroup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking[node] || len(d.asking) >= maxAsking {
		return
	}
	d.asking[node] = true
	running.Go(func() {
		rtt, err := ping()
		d.mu.Lock()
		delete(d.asking, node)
		d.mu.Unlock()
		if err == nil {
			d.heard(node, rtt)
			offer(d.poke, struct{}{})
		}
	})
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
	d.heard(n.Name, rtt)
}

func (d *delegate) heard(node string, rtt time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil {
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
