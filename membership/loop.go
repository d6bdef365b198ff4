package membership

import (
	"net/netip"
	"reflect"
	"slices"
	"time"
)

// loop owns what membership knows. It reads memberlist's list when something changed and at intervals,
// makes views, and starts what the joiner asks for.
type loop struct {
	m        *Membership
	assemble *assembler
	ledger   *ledger
	joiner   *joiner

	listed   map[netip.AddrPort]bool // addresses in the list at the last reading; the map is replaced, never changed
	last     View                    // the view that was published last
	lastRTT  time.Time               // when round trips were last published
	stale    bool                    // something changed since the last reading
	readAt   time.Time               // until then, a change causes no reading
	pollAt   time.Time               // when the list is read even without a change
	searchAt time.Time               // when the joiner has to check again
	aloof    map[netip.AddrPort]bool // members that had no direct connection at the last check
	checkAt  time.Time               // when the next such check is due
}

const (
	// rttEvery is how often a view is published that has only new round trips.
	rttEvery = 5 * time.Second
	// readRest: a rest of readRest times the reading's duration follows each reading. So reading takes at most
	// a fifth of the time.
	readRest    = 4
	readRestMin = 2 * time.Millisecond
	// readRestEach, times the number of members, is the shortest rest if they are more than the constant few: each
	// reading makes the agent look at all members. A change of a voter is read at once.
	readRestEach = 15 * time.Millisecond
	// calmPolls is how many probe intervals pass between two readings while nothing changes.
	calmPolls = 5
	// fewDoubted is up to how many doubted members are also asked by TCP. If there are more, they are probably
	// invented, and none is asked by TCP.
	fewDoubted = 8
)

func newLoop(m *Membership, seeds []seed, now time.Time) *loop {
	self := m.self
	self.GossipAddr = m.wire.advertise
	l := &loop{
		m: m, assemble: newAssembler(self, m.cfg.Judge, m.cfg.Rightful, m.del.answers), ledger: newLedger(),
		joiner: newJoiner(m.timing, seeds, now, m.wire.isSelf, m.exchange, &m.running),
		stale:  true, pollAt: now,
	}
	l.acquaint()
	return l
}

func (l *loop) run() {
	timer, due := time.NewTimer(0), time.Now()
	defer timer.Stop()
	for {
		select {
		case <-l.m.ctx.Done():
			return
		case <-timer.C:
			l.m.del.slow.woke(due, time.Now())
		case <-l.m.del.poke:
			if l.stale = true; l.m.del.urgent.Swap(false) {
				l.readAt = time.Time{}
			}
		case r := <-l.joiner.done:
			l.finish(r, time.Now())
		case seeds := <-l.m.reseed:
			l.joiner.plant(seeds, time.Now())
		case r := <-l.m.hints:
			l.note(r, time.Now())
		case <-l.m.update:
			_ = l.m.list.UpdateNode(time.Millisecond) // gossip sends the change even if this wait is too short
		}
		now := time.Now()
		if l.m.leaving.Load() {
			continue // memberlist does not list this agent any more: a view would not contain it
		}
		if l.stale && !now.Before(l.readAt) || !now.Before(l.pollAt) {
			l.read(now)
		}
		l.searchAt = l.joiner.start(l.m.ctx, now, l.listed)
		due = l.wake(now)
		timer.Reset(time.Until(due))
	}
}

// wake returns when the loop has to wake up even if nothing happens.
func (l *loop) wake(now time.Time) time.Time {
	at := earlier(l.pollAt, l.searchAt)
	if l.stale {
		at = earlier(at, l.readAt)
	}
	return later(at, now)
}

func restAfter(took time.Duration, members int) time.Duration {
	rest := max(readRestMin, readRest*took)
	if members > few {
		rest = max(rest, time.Duration(members)*readRestEach)
	}
	return rest
}

// read reads memberlist's list and publishes the view that results.
func (l *loop) read(now time.Time) {
	seen := l.m.del.seen(now, l.m.keys.removed.Load())
	defer func() { // the longer a reading takes, the later the next one comes
		done := time.Now()
		l.readAt = done.Add(restAfter(done.Sub(now), len(seen)))
		l.pollAt = later(l.readAt, done.Add(calmPolls*l.m.timing.probeInterval))
	}()
	l.stale = false
	l.listed = map[netip.AddrPort]bool{}
	for _, m := range seen {
		if m.Status == Alive {
			l.listed[m.GossipAddr] = true
		}
	}
	view, refused := l.assemble.assemble(now, seen)
	few := len(l.assemble.doubted) <= fewDoubted
	for _, m := range append(l.assemble.doubted, l.m.del.claimed()...) {
		exchange := func() error { return l.m.exchange(m.GossipAddr.String()) }
		l.m.del.ask(gossipName(m.Member), func() (time.Duration, error) {
			rtt, err := l.m.ping(m, askTimes)
			if err != nil && few && l.m.del.alone(gossipName(m.Member), m.GossipAddr.String()) { // a firewall may pass TCP but not UDP
				err = exchange()
			}
			return rtt, err
		}, exchange, &l.m.running)
	}
	if len(view.Members) <= 1 {
		refused = append(refused, l.joiner.unreached(now)...)
	}
	for _, m := range view.Members {
		if !slices.ContainsFunc(l.last.Members, func(o Member) bool { return o.Peer == m.Peer && o.Run == m.Run }) {
			l.ledger.arrive(m.GossipAddr.Addr())
		}
	}
	l.ledger.settle(now, refused)
	l.ledger.hear(now, l.m.wire.noise.Swap(0))
	l.joiner.seek(l.assemble.lost(), now)
	l.m.wire.admission.members.Store(int64(len(seen)))
	l.acquaint()
	if len(view.Members) < len(l.last.Members) {
		l.joiner.hurry(now)
	}
	if addr, found := l.unmet(view.Members, now); found {
		l.m.running.Go(func() { _ = l.m.exchange(addr.String()) }) // after an error, a later check finds the member again
	}
	l.publish(view, now)
}

// unmet returns the address of a member that had no direct connection at this check and at the one before.
// That member may have missed the gossip about this agent. Then it refuses this agent's connections, or does
// not dial, until the two exchange lists. In large clusters, memberlist exchanges lists only every minute.
func (l *loop) unmet(members []Member, now time.Time) (addr netip.AddrPort, found bool) {
	if l.m.cfg.Met == nil || now.Before(l.checkAt) {
		return addr, false
	}
	before := l.aloof
	l.aloof, l.checkAt = map[netip.AddrPort]bool{}, now.Add(l.m.timing.introduce)
	for _, m := range members {
		if m.Status == Alive && m.Peer != l.m.cfg.Self.Peer && !l.m.cfg.Met(m.Peer) {
			l.aloof[m.GossipAddr] = true
		}
	}
	for addr := range l.aloof { // in a random order
		if before[addr] {
			return addr, true
		}
	}
	return addr, false
}

// publish puts the view into its slot if it differs from the last one.
func (l *loop) publish(v View, now time.Time) {
	v.Refused = l.ledger.list()
	known := map[string]time.Duration{}
	for _, m := range l.last.Members {
		known[gossipName(m.Member)] = m.RTT
	}
	due := now.Sub(l.lastRTT) >= rttEvery
	for i := range v.Members {
		m := &v.Members[i]
		node := gossipName(m.Member)
		if m.RTT = known[node]; due || m.RTT == 0 {
			m.RTT, _ = l.m.del.answered(node)
		}
	}
	if reflect.DeepEqual(l.last, v) || len(v.Members) == 0 {
		return
	}
	if due {
		l.lastRTT = now
	}
	l.last = v
	select {
	case <-l.m.views: // nobody has taken the last view
	default:
	}
	l.m.views <- v // this loop alone sends, so the slot is free
}

func (l *loop) finish(r attempt, now time.Time) {
	for _, odd := range l.joiner.finish(r, now, l.m.cfg.Cluster) {
		l.note(odd, now)
	}
	l.acquaint()
}

// acquaint gives the wire the addresses of members and seeds.
func (l *loop) acquaint() {
	known := &acquaintances{members: map[netip.Addr]bool{}, sought: map[netip.Addr]bool{}}
	for a := range l.listed {
		known.members[a.Addr()] = true
	}
	for _, t := range l.joiner.targets {
		for _, a := range t.addrs() {
			if !known.members[a] {
				known.sought[a] = true
			}
		}
	}
	l.m.wire.known.Store(known)
}

// note records a hint. The next reading publishes it in a view.
func (l *loop) note(r Refusal, now time.Time) {
	known := l.m.wire.known.Load()
	host := r.Addr.Addr()
	l.ledger.note(now, r, known.members[host] || known.sought[host])
}
