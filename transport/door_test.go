package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

const maxUnknown = door.Unproven - door.ForMembers

// doorOf knows the members at these addresses.
func doorOf(members ...string) *doorman {
	known := map[netip.Addr]bool{}
	for _, m := range members {
		known[netip.MustParseAddr(m)] = true
	}
	return &doorman{places: door.NewPlaces[netip.Prefix](door.Unproven, door.ForMembers), full: func() {}, known: func(a netip.Addr) bool { return known[a] }}
}

// knock takes a place for a connection from the address.
func (d *doorman) knock(t *testing.T, from string) (network.ConnManagementScope, error) {
	t.Helper()
	at, err := multiaddr(netip.AddrPortFrom(netip.MustParseAddr(from), 1))
	if err != nil {
		t.Fatal(err)
	}
	return d.OpenConnection(network.DirInbound, true, at)
}

func TestPlacesAtTheDoorAreKeptForMembers(t *testing.T) {
	const member = "10.9.9.9"
	d := doorOf(member)
	var visits []network.ConnManagementScope
	for i := range 2 * door.Unproven {
		if v, err := d.knock(t, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)); err == nil {
			visits = append(visits, v)
		}
	}
	if len(visits) != maxUnknown {
		t.Errorf("%d connections of no member wait at the door, want %d", len(visits), maxUnknown)
	}
	for i := range door.ForMembers {
		v, err := d.knock(t, member)
		if err != nil {
			t.Fatalf("connection %d of a member finds no place while others flood the door: %v", i+1, err)
		}
		visits = append(visits, v)
	}
	if _, err := d.knock(t, member); !errors.Is(err, errPending) {
		t.Errorf("one too many got %v, want %v", err, errPending)
	}
	for _, v := range visits {
		v.Done()
		v.Done() // libp2p sometimes calls Done twice
	}
	if places, sources := d.places.Taken(); places != 0 || sources != 0 {
		t.Errorf("%d places are still taken, by %d sources", places, sources)
	}
}

func TestASourceAtTheDoorIsAnAddressOrASlash64(t *testing.T) {
	const member = "2001:db8::ffff"
	for _, c := range []struct {
		name string
		from func(i int) string
		want int
	}{
		{"one IPv4 address", func(int) string { return "10.0.0.1" }, maxPendingPerIP},
		{"many IPv4 addresses", func(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }, maxUnknown},
		{"many addresses of one /64", func(i int) string { return fmt.Sprintf("2001:db8::%x", i+1) }, maxPendingPerIP},
		{"many /64", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i+1) }, maxUnknown},
		{"the same IPv4 address, written as IPv6", func(int) string { return "::ffff:10.0.0.1" }, maxPendingPerIP},
	} {
		d := doorOf(member)
		let := 0
		for i := range door.Unproven {
			if _, err := d.knock(t, c.from(i)); err == nil {
				let++
			}
		}
		if let != c.want {
			t.Errorf("%s: %d found a place, want %d", c.name, let, c.want)
		}
		if _, err := d.knock(t, member); err != nil {
			t.Errorf("%s: a member of the same /64 finds no place: %v", c.name, err)
		}
	}
}

// TestConnectionsComeFromTheAddressOfTheAgent: also on a host with several addresses. Other agents
// reserve places for members' addresses.
func TestConnectionsComeFromTheAddressOfTheAgent(t *testing.T) {
	loopbacks.NeedTwo(t)
	ids := identities(t, 3)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_ = other.(*net.TCPListener).SetDeadline(time.Now().Add(patienceOfTests))
	own := netip.MustParseAddrPort("127.88.0.8:0")
	a := start(t, Config{Key: ids[1].key, Hello: helloOf("a", 1), Listen: own})
	for _, c := range []struct {
		what string
		peer int
	}{{"dials", 2}, {"asks whether anybody listens", 0}} {
		a.SetPeers([]Peer{{ID: ids[c.peer].id, Addr: netip.MustParseAddrPort(other.Addr().String())}})
		if l := a.link(ids[c.peer].id); !l.dials {
			l.probe()
		}
		conn, err := other.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if from := addrOf(conn.RemoteAddr()).Addr(); from != own.Addr() {
			t.Errorf("the agent at %s that %s comes from %s", own.Addr(), c.what, from)
		}
		a.SetPeers(nil)
		_ = conn.Close()
	}
}

func TestKeysOfOtherKindsAreNotEvenRead(t *testing.T) {
	a, _ := pair(t)
	for _, kind := range []byte{crypto.RSA, crypto.Secp256k1, crypto.ECDSA} {
		encoded := []byte{1 << 3, kind, 2<<3 | 2, 1, 0} // in Protocol Buffers: the kind, and a byte for a key
		if _, err := crypto.UnmarshalPublicKey(encoded); !errors.Is(err, crypto.ErrBadKeyType) {
			t.Errorf("a key of kind %d, which no agent has, was read: %v", kind, err)
		}
	}
	if a.self == "" {
		t.Error("an agent has lost its name")
	}
}

func TestAConnectionThatWasReplacedSaysNothingMore(t *testing.T) {
	a, b := pair(t)
	l := a.link(b.self)
	current := l.current()
	l.deliver(newSession(current.wire), election.BullyAnswer{})
	l.deliver(current, election.Inquiry{})
	if m := await[Message](t, a); m.Message != (election.Inquiry{}) {
		t.Errorf("got %+v first, which the replaced connection said", m)
	}
}
