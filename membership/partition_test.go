package membership

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
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

// gate drops all that an agent sends while its cut is off.
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
	// One cut for all: nobody reaches anybody. The first agent has no seeds, so
	// it must look for those it lost.
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
