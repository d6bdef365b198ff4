package membership

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
)

var loopback6 = netip.MustParseAddr("::1")

// listenable returns an error if the address can't be listened on.
func listenable(a netip.Addr) (int, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, 0).String())
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// gate drops all that an agent sends while the cut takes it off the network.
type gate struct {
	memberlist.Transport
	cut *cut
}

var errCut = errors.New("cut")

func (g gate) WriteTo(b []byte, addr string) (time.Time, error) {
	if g.cut.off.Load() {
		return time.Now(), nil
	}
	return g.Transport.WriteTo(b, addr)
}

func (g gate) DialTimeout(addr string, d time.Duration) (net.Conn, error) {
	if g.cut.off.Load() {
		return nil, errCut
	}
	return g.Transport.DialTimeout(addr, d)
}

func TestAHealedPartitionIsMerged(t *testing.T) {
	t.Parallel()
	// One cut for all: no agent reaches another. The first agent has no seeds, so it must look for the
	// members that it lost.
	off := &cut{}
	gated := func(n uint64, join ...string) *agent {
		cfg := testConfig(n)
		cfg.Join = join
		cfg.wrap = func(t memberlist.Transport) memberlist.Transport { return gate{t, off} }
		return start(t, cfg)
	}
	a := gated(1)
	b := gated(2, addrsOf(a)...)
	c := gated(3, addrsOf(a)...)
	all := []*agent{a, b, c}
	for _, x := range all {
		x.sees("agent-1", "agent-2", "agent-3")
	}
	off.off.Store(true)
	for i, x := range all {
		x.sees([]string{"agent-1", "agent-2", "agent-3"}[i])
	}
	off.off.Store(false)
	healed := time.Now()
	for _, x := range all {
		x.sees("agent-1", "agent-2", "agent-3")
		if len(x.view.Departed) != 0 {
			t.Errorf("%s still shows as departed: %+v", x.self.Name, x.view.Departed)
		}
	}
	t.Logf("merged %s after the heal", time.Since(healed))
	if took := time.Since(healed); took > moments {
		t.Errorf("took %s", took)
	}
}

// noDatagrams drops what an agent sends by UDP, as a firewall may.
type noDatagrams struct{ memberlist.Transport }

func (noDatagrams) WriteTo([]byte, string) (time.Time, error) { return time.Now(), nil }

// Where only TCP gets through, agents are slower to notice a death, but they meet.
func TestAgentsMeetWithoutUDP(t *testing.T) {
	t.Parallel()
	mute := func(n uint64, join ...string) *agent {
		cfg := testConfig(n)
		cfg.Join = join
		cfg.wrap = func(t memberlist.Transport) memberlist.Transport { return noDatagrams{t} }
		return start(t, cfg)
	}
	a := mute(1)
	b := mute(2, addrsOf(a)...)
	for _, x := range []*agent{a, b} {
		x.sees("agent-1", "agent-2")
	}
}

// dials reports each connection that an agent opens.
type dials struct {
	memberlist.Transport
	to chan string
}

func (d dials) DialTimeout(addr string, limit time.Duration) (net.Conn, error) {
	offer.To(d.to, addr)
	return d.Transport.DialTimeout(addr, limit)
}

// Once, one of fifty agents did not hear of a newcomer that it could reach. It refused the newcomer's
// connections for a minute, until the next exchange of lists.
func TestAMemberThatIsNotMetIsIntroduced(t *testing.T) {
	t.Parallel()
	a, to := start(t, testConfig(1)), make(chan string, 1)
	cfg := testConfig(2)
	cfg.Join = addrsOf(a)
	cfg.Met = func(election.PeerID) bool { return false }
	cfg.wrap = func(t memberlist.Transport) memberlist.Transport { return dials{t, to} }
	cfg.tune = func(t *timing) {
		t.pushPull, t.introduce, t.probeInterval = time.Hour, 50*time.Millisecond, 100*time.Millisecond
	}
	b := start(t, cfg)
	for _, x := range []*agent{a, b} {
		x.sees("agent-1", "agent-2")
	}
	for i := range 5 { // the first dial is the one by which it joined
		select {
		case addr := <-to:
			if addr != a.Addr().String() {
				t.Errorf("it dials %s", addr)
			}
		case <-time.After(patience):
			t.Fatalf("no exchange after %d", i)
		}
	}
}

// However many members were not met, the exchanges are few, and only with members that stay unmet.
func TestListsAreExchangedWithMembersThatStayUnmet(t *testing.T) {
	const every = 5 * time.Second
	at := func(n uint16) netip.AddrPort { return netip.AddrPortFrom(loopback6, n) }
	member := func(n uint16, peer election.PeerID) Member {
		return Member{Member: election.Member{Peer: peer}, GossipAddr: at(n), Status: Alive}
	}
	met := map[election.PeerID]bool{}
	self := testConfig(1)
	self.Met = func(p election.PeerID) bool { return met[p] }
	l := &loop{m: &Membership{cfg: self, timing: timing{introduce: every}}}
	all := []Member{member(1, self.Self.Peer), member(2, "b"), member(3, "c"), {Member: election.Member{Peer: "dead"}, GossipAddr: at(4), Status: Dead}}
	for i, step := range []struct {
		after time.Duration
		met   []election.PeerID
		want  []netip.AddrPort // one of these
	}{
		{0, nil, nil}, // they may be connecting
		{every - 1, nil, nil},
		{every, nil, []netip.AddrPort{at(2), at(3)}},
		{every + 1, nil, nil}, // so soon
		{2 * every, []election.PeerID{"b"}, []netip.AddrPort{at(3)}},
		{3 * every, []election.PeerID{"b", "c"}, nil},
		{4 * every, []election.PeerID{"c"}, nil}, // b has just been lost
		{5 * every, []election.PeerID{"c"}, []netip.AddrPort{at(2)}},
	} {
		clear(met)
		for _, p := range step.met {
			met[p] = true
		}
		got, found := l.unmet(all, time.Unix(1, 0).Add(step.after))
		if found != (step.want != nil) || found && !slices.Contains(step.want, got) {
			t.Errorf("step %d: %v, %v, want one of %v", i, got, found, step.want)
		}
	}
	l.m.cfg.Met = nil
	if _, found := l.unmet(all, time.Unix(100, 0)); found {
		t.Error("without Met it meets nobody")
	}
}
