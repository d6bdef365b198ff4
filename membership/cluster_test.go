package membership

import (
	"context"
	"flag"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// Election is the view as the agent's loop gives it to the elector.
func (v View) Election() election.View {
	return election.View{Members: each.Of(v.Members, func(m Member) election.Member { return m.Member })}
}

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "12") // they wait for rounds of gossip, not for processors
	os.Exit(m.Run())
}

func TestThreeFreshAgentsSeeEachOtherWithinMoments(t *testing.T) {
	// All start at the same moment and each joins the other two, so ports must be
	// known before.
	ports := loopbacks.FreePorts(t, 3)
	var cfgs []Config
	for n := range uint64(3) {
		cfg := testConfig(n + 1)
		cfg.Port = ports[n]
		for i, p := range ports {
			if i != int(n) {
				cfg.Join = append(cfg.Join, seed{host: "127.0.0.1", port: uint16(p)}.String())
			}
		}
		cfgs = append(cfgs, cfg)
	}
	began := time.Now()
	started := make(chan *Membership, 3)
	for _, cfg := range cfgs {
		go func() {
			m, err := New(cfg)
			if err != nil {
				t.Error(err)
			}
			started <- m
		}()
	}
	var agents []*agent
	for range 3 {
		if m := <-started; m != nil {
			t.Cleanup(func() { _ = m.Close() })
			agents = append(agents, &agent{Membership: m, t: t})
		}
	}
	for _, a := range agents {
		v := a.sees("agent-1", "agent-2", "agent-3")
		if !slices.IsSortedFunc(v.Members, byPeer) {
			t.Errorf("members are not sorted: %+v", v.Members)
		}
	}
	t.Logf("three agents saw each other %s after the start", time.Since(began))
	if took := time.Since(began); took > moments {
		t.Errorf("took %s", took)
	}
}

func TestMemberCarriesWhatItSaysOfItself(t *testing.T) {
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	m := find(t, a.sees("agent-1", "agent-2"), "agent-2")
	want := b.self
	want.GossipAddr, want.Status, want.RTT = b.Addr(), Alive, m.RTT
	if m.Peer != want.Peer || m.Lineage != want.Lineage || m.JoinedAt != want.JoinedAt || m.Version != want.Version ||
		m.PeerAddr != want.PeerAddr || m.GossipAddr != want.GossipAddr || m.Settings != want.Settings ||
		m.Status != want.Status || !slices.Equal(m.Candidacies, want.Candidacies) {
		t.Errorf("got %+v, want %+v", m, want)
	}
	e := a.view.Election()
	if got, ok := e.Find(want.Peer); !ok || got.Suspected || got.Name != "agent-2" {
		t.Errorf("election view: %+v %v", got, ok)
	}
}

func TestRoundTripsAreMeasured(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
	a.until("a round trip", func(v View) bool {
		return slices.ContainsFunc(v.Members, func(m Member) bool { return m.RTT > 0 })
	})
}

func TestAPingIsAnsweredOverUDP(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	to := find(t, a.sees("agent-1", "agent-2"), "agent-2")
	for began := time.Now(); ; { // a busy machine may answer too late
		err := a.Ping(to)
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no ping was answered within a minute: %v", err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Ping(to); err == nil || !strings.Contains(err.Error(), "3 pings were not answered") {
		t.Errorf("after its end: %v", err)
	}
}

func TestAMemberThatLeavesHasLeft(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	c := startJoined(t, 3, a)
	for _, x := range []*agent{a, b, c} {
		x.sees("agent-1", "agent-2", "agent-3")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*agent{a, c} {
		x.sees("agent-1", "agent-3")
		x.departs("agent-2", Left)
	}
}

func TestAKilledMemberIsDeadForAll(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	c := startJoined(t, 3, a)
	for _, x := range []*agent{a, b, c} {
		x.sees("agent-1", "agent-2", "agent-3")
	}
	killed := time.Now()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*agent{a, c} {
		x.sees("agent-1", "agent-3")
		x.departs("agent-2", Dead)
	}
	t.Logf("dead for both %s after the kill", time.Since(killed))
}

func TestARestartedAgentReplacesItsFormerLifeAtOnce(t *testing.T) {
	t.Parallel()
	for _, sameAddr := range []bool{true, false} {
		a := start(t, testConfig(1))
		b := startToReturn(t, 2, a)
		a.sees("agent-1", "agent-2")
		b.sees("agent-1", "agent-2")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(2)
		cfg.Join = addrsOf(a)
		cfg.Self.Lineage, cfg.Self.JoinedAt = 99, cfg.Self.JoinedAt+1
		if sameAddr {
			cfg.Port = int(b.Addr().Port())
		}
		again := start(t, cfg)
		a.until("the new boot", func(v View) bool {
			if len(v.Refused) > 0 {
				t.Errorf("a restart was refused: %+v", v.Refused)
			}
			m, ok := v.Election().Named("agent-2")
			return ok && m.Lineage == 99
		})
		again.sees("agent-1", "agent-2")
		if m := find(t, a.view, "agent-2"); m.GossipAddr != again.Addr() || len(a.view.Members) != 2 || len(a.view.Departed) != 0 {
			t.Errorf("same address %v: view %+v, want one agent-2 at %s", sameAddr, a.view, again.Addr())
		}
	}
}

func TestUpdatesReachTheOthers(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
	b.sees("agent-1", "agent-2")
	for _, draining := range []bool{true, false, true} {
		err := b.Update(func(m *Member) {
			m.Draining = draining
			m.Settings.Follows = draining
			m.Name = "ignored"
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []*agent{a, b} {
			x.until("the update", func(v View) bool {
				m, ok := v.Election().Named("agent-2")
				return ok && m.Draining == draining
			})
		}
	}
}

func TestJoiningOneselfIsHarmless(t *testing.T) {
	first := start(t, testConfig(1))
	addr := first.Addr()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(1)
	cfg.Port, cfg.Join = int(addr.Port()), []string{addr.String(), "localhost:" + seed{port: addr.Port()}.String()[1:]}
	a := start(t, cfg)
	b := startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
	b.sees("agent-1", "agent-2")
	// The agent does not recognise this address as its own: memberlist merges its own state.
	if _, err := a.list.Join([]string{addr.String()}); err != nil {
		t.Error(err)
	}
	a.sees("agent-1", "agent-2")
}

// TestStreamsComeFromTheAddressOfTheAgent: also on a host with several addresses. Other agents reserve
// places for members' addresses.
func TestStreamsComeFromTheAddressOfTheAgent(t *testing.T) {
	loopbacks.NeedTwo(t)
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_ = other.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	cfg := testConfig(1)
	cfg.Bind, cfg.Join = netip.MustParseAddr("127.88.0.7"), []string{other.Addr().String()}
	start(t, cfg)
	c, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if from := addrOf(c); from.Addr() != cfg.Bind {
		t.Errorf("the agent bound to %s comes from %s", cfg.Bind, from)
	}
}

func TestIPv6(t *testing.T) {
	cfg := testConfig(1)
	cfg.Bind = loopback6
	if _, err := listenable(cfg.Bind); err != nil {
		t.Skipf("no IPv6 loopback here: %v", err)
	}
	a := start(t, cfg)
	cfg = testConfig(2)
	cfg.Bind, cfg.DefaultPort, cfg.Join = loopback6, int(a.Addr().Port()), []string{"::1"}
	b := start(t, cfg)
	for _, x := range []*agent{a, b} {
		if v := x.sees("agent-1", "agent-2"); v.Members[0].GossipAddr.Addr() != loopback6 {
			t.Errorf("gossip address %s", v.Members[0].GossipAddr)
		}
	}
}

func TestLeaveIsBoundedAndRepeatable(t *testing.T) {
	a := start(t, testConfig(1))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range 2 {
		if err := a.Leave(ctx); err != nil {
			t.Errorf("leave alone: %v", err)
		}
	}
}
