package membership

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/internal/base/offer"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/hashicorp/memberlist"
)

// pings is how many UDP messages Ping sends before it reports that none was answered.
const pings = 3

// Membership is this agent's part in the gossip of its cluster.
type Membership struct {
	cfg    Config
	timing timing
	notary *notary
	tap    *logTap
	del    *delegate
	wire   *wire
	list   *memberlist.Memberlist
	keys   *keyring

	views  chan View // one slot, which has the newest view
	hints  chan Refusal
	update chan struct{} // one slot; an element means that the advertisement changed
	reseed chan []seed

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	self    Member     // this agent as last advertised
	ending  sync.Mutex // held by Leave and Close: memberlist panics if it is shut down while it leaves
	leaving atomic.Bool
	closed  atomic.Bool
}

// New binds the gossip port, starts, and returns. Joining goes on in the background, without end. An
// error names the wrong setting, or the address that is already in use.
func New(cfg Config) (*Membership, error) {
	t, err := cfg.Pace.timing()
	if err = cmp.Or(err, cfg.validate()); err != nil {
		return nil, err
	}
	if cfg.tune != nil {
		cfg.tune(&t)
	}
	if cfg.Judge == nil {
		cfg.Judge = func(Member) error { return nil }
	}
	if cfg.Rightful == nil {
		cfg.Rightful = noMember
	}
	if cfg.Votes == nil {
		cfg.Votes = noMember
	}
	m := &Membership{
		cfg: cfg, timing: t, notary: newNotary(cfg.Cluster, cfg.PeerIDOf),
		views: make(chan View, 1), hints: make(chan Refusal, 64),
		update: make(chan struct{}, 1), reseed: make(chan []seed),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.tap = newLogTap(cfg.Logger)
	if err := m.open(); err != nil {
		m.cancel()
		return nil, fmt.Errorf("start membership: %w", err)
	}
	seeds, err := m.seeds(cfg.Join)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start membership: %w", err), m.Close())
	}
	l := newLoop(m, seeds, time.Now())
	m.running.Go(func() { m.tap.drain(m.ctx) })
	m.running.Go(l.run)
	return m, nil
}

// open binds, signs the first advertisement and starts memberlist.
func (m *Membership) open() error {
	m.del = newDelegate(m.notary, gossipName(m.cfg.Self.Member))
	m.del.forged = m.hints
	m.del.owns, m.del.votes = m.cfg.Rightful, m.cfg.Votes
	g := &guard{label: m.cfg.Cluster, left: m.del.left}
	var err error
	if m.keys, err = newKeyring(g, m.cfg.Key, m.cfg.OtherKeys); err != nil {
		return err
	}
	if m.wire, err = listen(m.cfg, g, m.timing, m.hints); err != nil {
		return err
	}
	if err = m.start(); err != nil {
		_ = m.wire.Shutdown() // err has the cause
	}
	return err
}

func (m *Membership) start() error {
	m.self = m.cfg.Self
	m.self.Version = m.self.Version[:min(len(m.self.Version), maxWord)]
	if !m.self.PeerAddr.Addr().IsValid() || m.self.PeerAddr.Addr().IsUnspecified() {
		m.self.PeerAddr = netip.AddrPortFrom(m.wire.advertise.Addr(), m.self.PeerAddr.Port())
	}
	meta, err := m.notary.seal(m.self, m.cfg.Signer)
	if err != nil {
		return err
	}
	m.del.meta.Store(&meta)
	cfg := m.listConfig()
	m.del.kept = cfg.GossipToTheDeadTime
	m.del.slow = newSuspicion(cfg, time.Now())
	if m.list, err = memberlist.Create(cfg); err != nil {
		return fmt.Errorf("start memberlist: %w", err)
	}
	m.del.slow.list.Store(m.list)
	return nil
}

func (m *Membership) listConfig() *memberlist.Config {
	cfg := memberlist.DefaultLANConfig()
	cfg.Name = m.del.self
	cfg.Label = m.cfg.Cluster
	cfg.BindPort = int(m.wire.advertise.Port())
	cfg.AdvertisePort = cfg.BindPort
	cfg.Transport = m.wire
	if m.cfg.wrap != nil {
		cfg.Transport = m.cfg.wrap(m.wire)
	}
	cfg.Logger = log.New(m.tap, "", 0)
	cfg.Delegate, cfg.Events, cfg.Alive, cfg.Ping = m.del, m.del, m.del, m.del
	// Advertisements are small and mostly signatures: nothing to compress.
	cfg.EnableCompression = false

	t := m.timing
	cfg.ProbeInterval, cfg.ProbeTimeout = t.probeInterval, t.probeTimeout
	cfg.SuspicionMult, cfg.SuspicionMaxTimeoutMult = t.suspicionMult, t.suspicionMaxMult
	cfg.AwarenessMaxMultiplier = t.awareness
	cfg.GossipInterval, cfg.PushPullInterval, cfg.TCPTimeout = t.gossip, t.pushPull, t.tcp
	cfg.DeadNodeReclaimTime = time.Second
	cfg.GossipToTheDeadTime = t.forget
	cfg.Keyring = m.keys.ring
	return cfg
}

// Views returns a channel with the newest view. Each view comes once; a newer one replaces a view that
// was not taken. The first holds this agent alone, the last is from before Leave. The channel is never
// closed.
func (m *Membership) Views() <-chan View { return m.views }

// Addr returns the gossip address that other agents get.
func (m *Membership) Addr() netip.AddrPort { return m.wire.advertise }

// Ping asks another agent for an answer over UDP, a few times. If none comes, the error has the reason.
func (m *Membership) Ping(to Member) error {
	_, err := m.ping(to, pings)
	if _, silent := errors.AsType[memberlist.NoPingResponseError](err); silent {
		return fmt.Errorf("%d pings were not answered", pings)
	}
	return err
}

// ping asks up to the given number of times, and returns the round trip of the first answer.
func (m *Membership) ping(to Member, times int) (rtt time.Duration, err error) {
	for range times {
		if rtt, err = m.list.Ping(gossipName(to.Member), net.UDPAddrFromAddrPort(to.GossipAddr)); err == nil {
			break
		}
	}
	return rtt, err
}

// exchange exchanges whole member lists with the agent at that address.
func (m *Membership) exchange(addr string) error {
	_, err := m.list.Join([]string{addr})
	if err == nil {
		m.del.reached(addr)
	}
	return err
}

// Update changes what this agent gossips about itself: draining, whether it follows the roster's
// settings, and its status page. Other changes are ignored. Update returns at once, and gossip spreads
// the change. If it returns an error, nothing was changed.
func (m *Membership) Update(change func(*Member)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return errWireClosed
	}
	wish := m.self
	change(&wish)
	next := m.self
	next.Draining, next.Settings.Follows, next.PageAddr = wish.Draining, wish.Settings.Follows, wish.PageAddr
	meta, err := m.notary.seal(next, m.cfg.Signer)
	if err != nil {
		return err
	}
	if bytes.Equal(meta, *m.del.meta.Load()) {
		return nil
	}
	m.self = next
	m.del.meta.Store(&meta)
	offer.To(m.update, struct{}{})
	return nil
}

// leaveFor bounds how long memberlist's Leave may take.
const leaveFor = 2 * time.Second

// Leave notifies the others that this agent leaves. It returns when the notice was sent, at the context's
// deadline, or after leaveFor. No views follow. Then only Close may be called; a second Leave does nothing.
func (m *Membership) Leave(ctx context.Context) error {
	m.ending.Lock()
	defer m.ending.Unlock()
	if m.closed.Load() {
		return errWireClosed
	}
	m.leaving.Store(true)
	limit := leaveFor
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(deadline), time.Millisecond))
	}
	return wrap.Error(m.list.Leave(limit), "leave cluster")
}

// Close stops gossiping and frees the port. If Leave was not called before, the others count this agent
// as dead. Close waits for a Leave under way.
func (m *Membership) Close() error {
	m.ending.Lock()
	defer m.ending.Unlock()
	if m.closed.Swap(true) {
		return nil
	}
	m.cancel()
	err := m.list.Shutdown()
	m.running.Wait()
	return wrap.Error(err, "close membership")
}
