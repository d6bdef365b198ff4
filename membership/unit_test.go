package membership

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/election"
)

func testNotary(t testing.TB) *notary {
	t.Helper()
	return newNotary("test", testPeerID)
}

func TestAnAdvertisementComesBackAsItWas(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	m := cfg.Self
	m.Draining = true
	meta, err := n.seal(m, cfg.Signer)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(meta))
	got, err := n.open(gossipName(m.Member), meta)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, want %+v", got, m)
	}
}

func TestTheLongestNamesFit(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	m := cfg.Self
	m.Name, m.Version, m.Settings.Algorithm = strings.Repeat("n", 63), strings.Repeat("v", maxWord), strings.Repeat("a", maxWord)
	m.PeerAddr = netip.AddrPortFrom(netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666"), 65535)
	m.JoinedAt, m.Lineage = 1<<62, 1<<63
	m.Settings.Heartbeat, m.Settings.Lease = 1<<62, 1<<62
	meta, err := n.seal(m, cfg.Signer)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d bytes", len(meta), memberlist.MetaMaxSize)
}

func TestAnyChangedByteIsRefused(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	node := gossipName(cfg.Self.Member)
	meta, err := n.seal(cfg.Self, cfg.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range meta {
		bad := bytes.Clone(meta)
		bad[i] ^= 0x40
		if _, err := n.open(node, bad); err == nil {
			t.Errorf("byte %d changed and nothing said", i)
		}
		if _, err := n.open(node, meta[:i]); err == nil {
			t.Errorf("cut to %d bytes and nothing said", i)
		}
	}
	if _, err := n.open(node+"x", meta); err == nil {
		t.Error("it passes for another node")
	}
	other := newNotary("other", testPeerID)
	if _, err := other.open(node, meta); err == nil {
		t.Error("it passes in another cluster")
	}
}

func FuzzOpen(f *testing.F) {
	n, cfg := testNotary(f), testConfig(1)
	meta, err := n.seal(cfg.Self, cfg.Signer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta[advertHeader:])
	f.Add([]byte{0xa1, 0x01, 0x40})
	f.Fuzz(func(t *testing.T, body []byte) {
		// Signed by its sender, so that all of the decoder is reached.
		node := "fuzz"
		sealed := append([]byte{advertVersion}, ed25519.Sign(cfg.Signer, n.signed(node, body))...)
		m, err := n.open(node, append(sealed, body...))
		if err == nil && checkMember(m) != nil {
			t.Errorf("let in %+v", m)
		}
	})
}

func TestBadConfigurationIsNamed(t *testing.T) {
	cases := []struct {
		want   string
		change func(*Config)
	}{
		{"cluster name", func(c *Config) { c.Cluster = "" }},
		{"cluster key has 5 bytes", func(c *Config) { c.Key = []byte("12345") }},
		{"not an ed25519 private key", func(c *Config) { c.Signer = nil }},
		{"the signer's peer ID is", func(c *Config) { c.Self.Peer = "somebody" }},
		{"PeerIDOf is missing", func(c *Config) { c.PeerIDOf = nil }},
		{"no address to bind", func(c *Config) { c.Bind = netip.Addr{} }},
		{"has a zone", func(c *Config) { c.Bind = netip.MustParseAddr("fe80::1%lo") }},
		{"port 70000", func(c *Config) { c.Port = 70000 }},
		{"can't reach the advertised address", func(c *Config) { c.Advertise = netip.MustParseAddr("0.0.0.0") }},
		{"can't reach the advertised address", func(c *Config) { c.Bind = netip.MustParseAddr("::"); c.Advertise = netip.Addr{} }},
		{`join address "a:b:c"`, func(c *Config) { c.Join = []string{"a:b:c"} }},
		{"unknown pace", func(c *Config) { c.Pace = "slow" }},
		{"is not of the form", func(c *Config) { c.Self.Name = "UPPER" }},
		{"it has no start time", func(c *Config) { c.Self.JoinedAt = 0 }},
		{"can't reach the peer address", func(c *Config) { c.Self.PeerAddr = netip.AddrPort{} }},
	}
	for _, c := range cases {
		cfg := testConfig(1)
		c.change(&cfg)
		m, err := New(cfg)
		if err == nil {
			_ = m.Close()
		}
		wantText(t, err, c.want)
	}
	noneLeft(t)
}

func TestAPortInUseIsNamed(t *testing.T) {
	a := start(t, testConfig(1))
	cfg := testConfig(2)
	cfg.Port = int(a.Addr().Port())
	_, err := New(cfg)
	wantText(t, err, a.Addr().String(), "in use")
}

func TestSeedsAreParsed(t *testing.T) {
	for in, want := range map[string]string{
		"host": "host:7", "host:1": "host:1", "10.0.0.1": "10.0.0.1:7", "10.0.0.1:1": "10.0.0.1:1",
		"::1": "[::1]:7", "[::1]": "[::1]:7", "[::1]:1": "[::1]:1", "a.example.org:1": "a.example.org:1",
	} {
		if got, err := parseSeed(in, 7); err != nil || got.String() != want {
			t.Errorf("%q: got %q and %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", ":1", "host:", "host:0", "host:99999", "host:x", "a b", "x/y", "[::1"} {
		if got, err := parseSeed(in, 7); err == nil {
			t.Errorf("%q: got %q, want an error", in, got)
		}
	}
}

// testAssembler returns an assembler that accepts all members, and to which all have answered.
func testAssembler(owns func(Member) bool) *assembler {
	return newAssembler(testConfig(1).Self, func(Member) error { return nil }, owns, func(string) bool { return true })
}

func nobody(Member) bool { return false }

func TestSameNodesGiveTheSameViewInAnyOrder(t *testing.T) {
	var seen []Member
	for i := range uint64(8) {
		m := testConfig(i + 1).Self
		m.GossipAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1)
		m.Status = []Status{Alive, Alive, Dead, Left}[i%4]
		seen = append(seen, m)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var first View
	for i := range 20 {
		rng.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		v, _ := testAssembler(nobody).assemble(time.Unix(1, 0), seen)
		if i == 0 {
			first = v
		}
		if !reflect.DeepEqual(first, v) {
			t.Fatalf("got %+v, want %+v", v, first)
		}
	}
	if len(first.Members) != 4 || len(first.Departed) != 4 {
		t.Errorf("%d members and %d departed, want 4 and 4", len(first.Members), len(first.Departed))
	}
}

func TestDepartedAreBoundedAndForgotten(t *testing.T) {
	a := testAssembler(nobody)
	var seen []Member
	for i := range 3 * maxDeparted {
		name := fmt.Sprintf("n%03d", i)
		seen = append(seen, Member{Member: election.Member{Peer: election.PeerID(name), Name: name, JoinedAt: 1},
			GossipAddr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{1, 1, 1, byte(i)}), 1), Status: Alive})
	}
	now := time.Unix(1, 0)
	if v, _ := a.assemble(now, seen); len(v.Members) != len(seen) {
		t.Fatalf("%d members, want %d", len(v.Members), len(seen))
	}
	v, _ := a.assemble(now, nil) // memberlist has forgotten them
	if len(v.Departed) != maxDeparted || v.Departed[0].Status != Dead || len(a.lost()) != maxDeparted {
		t.Errorf("%d departed, want %d dead ones", len(v.Departed), maxDeparted)
	}
	if v, _ = a.assemble(now.Add(departedFor+1), nil); len(v.Departed) != 0 {
		t.Errorf("%d departed after their time", len(v.Departed))
	}
}

func TestMemberlistsLinesAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	tap := newLogTap(log)
	now := time.Unix(1, 0)
	for i, line := range []string{
		"[DEBUG] memberlist: Initiating push/pull sync with: x 10.0.0.1:1\n",
		"[ERR] memberlist: Failed to send gossip to 10.0.0.1:7946: no route\n",
		"[ERR] memberlist: Failed to send gossip to 10.0.0.2:7946: no route\n",
		"[INFO] memberlist: Suspect b#00 has failed, no acks received\n",
		"[WARN] memberlist: Got ping for unexpected node 'x' from=10.0.0.1:1\n",
	} {
		tap.take(line, now.Add(time.Duration(i)))
	}
	got := out.String()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "10.0.0.1:7946") || !strings.Contains(got, "level=INFO") {
		t.Errorf("logged:\n%s", got)
	}
	for i := range 1000 {
		tap.take("[WARN] memberlist: kind "+strings.Repeat("y", i%200)+"\n", now)
	}
	if len(tap.kinds) > logKinds {
		t.Errorf("%d kinds kept", len(tap.kinds))
	}
	for range 2 * logQueue { // nobody drains: must not block
		_, _ = tap.Write([]byte("[WARN] memberlist: " + strings.Repeat("long", 1000)))
	}
}

func TestTheOwnerOfANameWinsItWhoeverCameFirst(t *testing.T) {
	owner := Member{Member: election.Member{Peer: "real", Name: "b", JoinedAt: 9}}
	intruder := Member{Member: election.Member{Peer: "rebuilt", Name: "b", JoinedAt: 1}}
	a := testAssembler(func(m Member) bool { return m.Peer == "real" })
	kept, refused := a.oneName([]Member{intruder, owner})
	if len(kept) != 1 || kept[0].Peer != "real" || len(refused) != 1 {
		t.Fatalf("kept %+v, refused %+v; want the owner alone", kept, refused)
	}
	kept, _ = testAssembler(nobody).oneName([]Member{owner, intruder})
	if len(kept) != 1 || kept[0].Peer != "rebuilt" {
		t.Fatalf("kept %+v; of two without a right the senior stays", kept)
	}
}
