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

	"github.com/doyen-election/doyen/internal/base/offer"
)

// delegate has the functions that memberlist calls back while it holds its lock. So they never block or call
// what needs that lock: they copy what they get, wake the loop and return.
type delegate struct {
	notary *notary
	self   string            // this agent's gossip name
	owns   func(Member) bool // reports whether the member owns its name
	votes  func(Member) bool // reports whether the member votes
	meta   atomic.Pointer[[]byte]
	live   atomic.Int64   // nodes memberlist counts as alive or suspect
	poke   chan struct{}  // one slot; an element means that something changed
	urgent atomic.Bool    // a voter changed, or answered for the first time, since the loop last asked
	forged chan<- Refusal // bounded; a refusal may be lost, since a forgery is gossiped again and again
	slow   *suspicion     // nil only in tests

	exchanges sync.Mutex // held during an exchange that ask starts, so that only one runs at a time

	mu       sync.Mutex
	verified listed             // the advertisement that was verified last
	nodes    map[string]*listed // what memberlist lists, by gossip name
	asking   map[string]bool    // the nodes that are being asked
	claims   map[string]Member  // the nodes that have to answer before memberlist may list them
	proven   map[string]bool    // nodes that have just answered, so memberlist may list them
	kept     time.Duration      // for how long memberlist lists a dead node
}

// listed is a node as memberlist lists it. Memberlist has no call that returns this: its Members mixes
// alive nodes with suspect ones, omits dead ones, and returns pointers to data that memberlist changes.
type listed struct {
	Member             // as it advertises itself, with GossipAddr and Status
	node     string    // its gossip name
	meta     []byte    // its advertisement
	since    time.Time // when the node got its status
	live     time.Time // when it last changed from another status to live
	leaves   bool      // the node has announced that it leaves
	rtt      time.Duration
	answered time.Time // when the node last answered; zero: never
	asked    time.Time // when the node was last asked; zero: never
}

const (
	// maxAsking bounds the nodes that are asked at the same time. askTimes bounds the pings that one such
	// question sends. A listed node is asked again only after askAgain.
	maxAsking = 2 * maxUnproven
	askTimes  = 2
	askAgain  = 2 * time.Second
	// maxUnproven bounds the listed nodes that have never answered: anyone who has the key can announce
	// agents that do not exist, at any address. If there are that many, a new node must answer before it
	// is listed.
	maxUnproven = 64
	// patientFor is how long a node that does not answer this agent must be listed as live before it counts as
	// existing. By then it must have answered other agents: else memberlist would list it as dead.
	patientFor = 2 * time.Minute
)

func newDelegate(n *notary, self string) *delegate {
	return &delegate{notary: n, self: self, poke: make(chan struct{}, 1), nodes: map[string]*listed{}, asking: map[string]bool{},
		claims: map[string]Member{}, proven: map[string]bool{}, owns: noMember, votes: noMember}
}

func noMember(Member) bool { return false }

// open verifies the node's advertisement and returns its content. It does not verify again what it verified
// last, or what the node is listed with: the same advertisement arrives again and again.
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

// NotifyAlive keeps nodes out of memberlist's list. A node without a valid signature could replace a
// member's advertisement. A node with other versions would make memberlist refuse whole exchanges.
// NotifyAlive also bounds the list, and the nodes in it that have not answered.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if d.slow != nil {
		d.slow.adapt(time.Now(), d.live.Load()) // here because memberlist calls NotifyAlive all the time
	}
	if said := [...]byte{n.PMin, n.PMax, n.PCur, n.DMin, n.DMax, n.DCur}; string(said[:]) != versions {
		return errVersions // the guard has reported it
	}
	m, err := d.open(n.Name, n.Meta)
	if err != nil {
		offer.To(d.forged, Refusal{Cause: CauseSignature, Name: displayName(n.Name), Addr: nodeAddr(n), Err: err})
		return err
	}
	if n.Name != d.self && d.live.Load() >= maxMembers {
		return errFull
	}
	if m.GossipAddr = nodeAddr(n); n.Name != d.self && !d.mayList(n.Name, m) {
		offer.To(d.poke, struct{}{})
		return errUnproven
	}
	return nil
}

// mayList reports whether memberlist may list a node. It may if the node is listed already, has answered,
// or owns its name, or if fewer than maxUnproven listed nodes have not answered.
func (d *delegate) mayList(node string, m Member) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil && (k.Status == Alive || !k.answered.IsZero()) || d.owns(m) || d.proven[node] {
		return true
	}
	unproven := 0
	for other, k := range d.nodes {
		if k.Status == Alive && k.answered.IsZero() && other != d.self && !d.owns(k.Member) {
			unproven++
		}
	}
	if unproven >= maxUnproven && len(d.claims) < maxMembers {
		d.claims[node] = m
	}
	return unproven < maxUnproven
}

func (d *delegate) NotifyJoin(n *memberlist.Node)   { d.live.Add(1); d.saw(n, Alive) }
func (d *delegate) NotifyLeave(n *memberlist.Node)  { d.live.Add(-1); d.saw(n, Dead) }
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.saw(n, Alive) }

// saw records how memberlist lists a node from now on.
func (d *delegate) saw(n *memberlist.Node, status Status) {
	m, err := d.open(n.Name, n.Meta)
	if err != nil {
		return // memberlist lists only nodes that passed NotifyAlive
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
	k.leaves = k.leaves && k.Status == Alive // a dead node that is announced again has come back
	if status == Dead && k.leaves {
		status = Left
	}
	m.GossipAddr, m.Status = nodeAddr(n), status
	k.Member, k.meta, k.since = m, bytes.Clone(n.Meta), now
	d.mu.Unlock()
	if d.votes(m) {
		d.urgent.Store(true)
	}
	offer.To(d.poke, struct{}{})
}

// left records that a node announced that it leaves, before memberlist gets the message: memberlist does
// not report whether a node left or died.
func (d *delegate) left(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil {
		k.leaves = true
	}
}

// seen returns all nodes that memberlist lists, and dead ones for a while. If a key was removed, a dead node
// that has not answered since then counts as left, since it may lack the present keys.
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

// answers reports whether the node has answered since it was listed as live, or has been live for so long
// that it must exist.
func (d *delegate) answers(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.nodes[node]
	return k != nil && (k.answered.After(k.live) || time.Since(k.live) >= patientFor)
}

// ask starts a goroutine that asks a node by ping, unless that is under way or was done a moment ago, or too
// many nodes are being asked. An answer proves that the node has that gossip name and a current cluster key.
// If memberlist does not list the node, the exchange lists it, and others that have answered meanwhile.
func (d *delegate) ask(node string, ping func() (time.Duration, error), exchange func() error, running *sync.WaitGroup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; d.asking[node] || len(d.asking) >= maxAsking || k != nil && time.Since(k.asked) < askAgain {
		return
	}
	d.asking[node] = true
	running.Go(func() {
		rtt, err := ping()
		if err == nil && d.prove(node) {
			d.exchanges.Lock()
			if d.prove(node) { // false if the previous exchange has listed the node
				_ = exchange() // after an error, gossip announces the node again later
			}
			d.exchanges.Unlock()
		}
		d.mu.Lock()
		delete(d.asking, node)
		delete(d.proven, node)
		delete(d.claims, node)
		if k := d.nodes[node]; k != nil {
			k.asked = time.Now()
		}
		d.mu.Unlock()
		if err == nil {
			d.heard(node, rtt)
		}
		offer.To(d.poke, struct{}{})
	})
}

// prove records that a node has answered, so that memberlist may list it. It returns true if the node is not
// listed yet.
func (d *delegate) prove(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proven[node] = true
	return d.nodes[node] == nil
}

// claimed returns the nodes that have to answer before they are listed.
func (d *delegate) claimed() []Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.claims))
}

// reached records that the agent at that address has exchanged lists with this one. Where several
// nodes claim the address, the exchange does not show which of them is there.
func (d *delegate) reached(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if there := d.at(addr); len(there) == 1 {
		there[0].answered = time.Now()
	}
	offer.To(d.poke, struct{}{})
}

// alone reports whether no live node except the given one has that address.
func (d *delegate) alone(node, addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.ContainsFunc(d.at(addr), func(k *listed) bool { return k.node != node })
}

func (d *delegate) at(addr string) (there []*listed) {
	for _, k := range d.nodes {
		if k.Status == Alive && k.GossipAddr.String() == addr {
			there = append(there, k)
		}
	}
	return there
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
		if !k.answered.After(k.live) && d.votes(k.Member) {
			d.urgent.Store(true) // it may enter the view now
		}
		k.rtt, k.answered = rtt, time.Now()
	}
}

// answered returns the node's last round trip and when that was; both are zero if it has not answered.
func (d *delegate) answered(node string) (rtt time.Duration, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.nodes[node]; k != nil {
		return k.rtt, k.answered
	}
	return 0, time.Time{}
}

// Gossip carries only membership, so these callbacks do nothing.

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

// displayName returns the agent's name from a gossip name, cut to a bounded length: a peer can send one
// of any length.
func displayName(node string) string {
	for i, r := range node {
		if r == '#' || i >= 63 {
			return node[:i]
		}
	}
	return node
}
