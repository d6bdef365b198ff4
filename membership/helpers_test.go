package membership

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// A joiner recognises a seed of another cluster only at a try 5 to 10 s after the first one. On a busy machine
// no answer may come in time, and a node counts as there only after patientFor.
const patience = patientFor + 30*time.Second

// moments bounds what agents do within a fraction of a second: a busy machine delays it by less, and
// exchanges of whole lists alone take longer. join_test.go judges the pauses of joining by a separate
// clock.
const moments = 10 * time.Second

// testKey makes a key from a number, so that a test has the same peer IDs on
// every run.
func testKey(n uint64) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, n)
	return ed25519.NewKeyFromSeed(seed)
}

func testPeerID(k ed25519.PublicKey) (election.PeerID, error) {
	if len(k) != ed25519.PublicKeySize {
		return "", errors.New("no key")
	}
	return election.PeerID("peer-" + hex.EncodeToString(k)), nil
}

var testSettings = Settings{Algorithm: "bully", Quorum: true, Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond}

// testConfig is agent n on a free port of 127.0.0.1, senior to all higher n.
func testConfig(n uint64) Config {
	key := testKey(n)
	id, _ := testPeerID(publicKey(key))
	return Config{
		Cluster: "test", Key: []byte("0123456789abcdef0123456789abcdef"), Signer: key, PeerIDOf: testPeerID,
		Bind: netip.MustParseAddr("127.0.0.1"),
		Self: Member{
			Member: election.Member{
				Peer: id, Lineage: election.LineageID(n), Name: fmt.Sprintf("agent-%d", n), JoinedAt: int64(1_000_000 + n),
			},
			Version: "v1", PeerAddr: netip.MustParseAddrPort("127.0.0.1:7947"), Settings: testSettings,
		},
	}
}

// agent is a Membership with the newest view a test has seen of it.
type agent struct {
	*Membership
	t    *testing.T
	view View
}

func start(t *testing.T, cfg Config) *agent {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatalf("start %q: %v", cfg.Self.Name, err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &agent{Membership: m, t: t}
}

// startJoined starts agent n with the seeds' addresses.
func startJoined(t *testing.T, n uint64, seeds ...*agent) *agent {
	t.Helper()
	cfg := testConfig(n)
	cfg.Join = addrsOf(seeds...)
	return start(t, cfg)
}

// startToReturn starts agent n on a port that stays free when it is closed: a later life takes it.
func startToReturn(t *testing.T, n uint64, seeds ...*agent) *agent {
	t.Helper()
	cfg := testConfig(n)
	cfg.Port, cfg.Join = loopbacks.FreePorts(t, 1)[0], addrsOf(seeds...)
	return start(t, cfg)
}

func addrsOf(agents ...*agent) []string {
	var addrs []string
	for _, a := range agents {
		addrs = append(addrs, a.Addr().String())
	}
	return addrs
}

// until takes views until one fits.
func (a *agent) until(what string, fits func(View) bool) View {
	a.t.Helper()
	deadline := time.After(patience)
	for {
		if fits(a.view) {
			return a.view
		}
		select {
		case a.view = <-a.Views():
		case <-deadline:
			a.t.Fatalf("%s: waited %s for: %s; last view %+v", a.self.Name, patience, what, a.view)
		}
	}
}

// sees waits until exactly these names are members.
func (a *agent) sees(names ...string) View {
	a.t.Helper()
	slices.Sort(names)
	return a.until("members "+strings.Join(names, ","), func(v View) bool {
		return slices.Equal(namesOf(v.Members), names)
	})
}

// departs waits until that name has departed with the status.
func (a *agent) departs(name string, status Status) {
	a.t.Helper()
	a.until(fmt.Sprintf("%s to be %s", name, status), func(v View) bool {
		return slices.ContainsFunc(v.Departed, func(m Member) bool { return m.Name == name && m.Status == status })
	})
}

// refuses waits for a view with a refusal of the cause and returns the refusal.
func (a *agent) refuses(cause Cause) Refusal {
	a.t.Helper()
	is := func(r Refusal) bool { return r.Cause == cause }
	v := a.until(fmt.Sprintf("a refusal because of %s", cause), func(v View) bool { return slices.ContainsFunc(v.Refused, is) })
	return v.Refused[slices.IndexFunc(v.Refused, is)]
}

func namesOf(members []Member) []string {
	names := []string{}
	for _, m := range members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

func find(t *testing.T, v View, name string) Member {
	t.Helper()
	i := slices.IndexFunc(v.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no member %q in %+v", name, v)
	}
	return v.Members[i]
}

func wantText(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// noneLeft fails if goroutines of membership or memberlist remain.
func noneLeft(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	buf := make([]byte, 1<<20)
	for {
		var left []string
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			ours := strings.Contains(g, "hashicorp/memberlist") || strings.Contains(g, "membership.(*")
			if ours && !strings.Contains(g, "testing.tRunner") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d goroutines left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	}
}

// cut is a switch that takes an agent off the network.
type cut struct{ off atomic.Bool }
