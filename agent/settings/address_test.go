package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-sockaddr"
)

func TestTheAddressToldIsOneThatIsListenedOn(t *testing.T) {
	interfaces := func(addresses ...string) (all sockaddr.IfAddrs) {
		for _, a := range addresses {
			ip, err := sockaddr.NewIPAddr(a)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sockaddr.IfAddr{SockAddr: ip, Interface: net.Interface{Flags: net.FlagUp}})
		}
		return all
	}
	down := interfaces("10.0.0.9/24", "10.0.0.8/24")
	down[0].Flags = 0
	for _, test := range []struct {
		bind       string
		interfaces sockaddr.IfAddrs
		want       string
	}{
		{"0.0.0.0", interfaces("fd00::2/64", "203.0.113.2/24", "192.168.0.2/24", "10.0.0.2/24"), "192.168.0.2"},
		{"::", interfaces("192.168.0.2/24", "2001:db8::2/64", "fd00::2/64"), "fd00::2"},
		{"0.0.0.0", interfaces("fd00::2/64", "203.0.113.2/24"), "203.0.113.2"},
		{"0.0.0.0", interfaces("127.0.0.1/8", "169.254.0.2/16", "192.0.2.2/24"), "192.0.2.2"},
		{"::", interfaces("::1/128", "fe80::1/64", "10.5.5.2/24"), ""},
		{"0.0.0.0", down, "10.0.0.8"},
		{"0.0.0.0", nil, ""},
	} {
		if got := addressLike(netip.MustParseAddr(test.bind), test.interfaces); got != test.want {
			t.Errorf("%s among %v: %q, want %q", test.bind, test.interfaces, got, test.want)
		}
	}
}

// A port below 1024 needs a capability, and the keeper takes all capabilities from its agent.
func TestAPortThatAnAgentMayNotUse(t *testing.T) {
	c := Config{Bind: "127.0.0.1", GossipPort: 53, PeerPort: 7947, HTTP: "127.0.0.1:80", AgentCheck: "[::1]:1024", Keeper: true}
	want := []string{"--gossip-port: port 53 is below ", "--http: port 80 is below "}
	for first, wanted := range map[int][]string{1024: want, 60: want[:1], 0: nil} {
		got := c.portsBelow(first)
		if !slices.EqualFunc(got, wanted, strings.HasPrefix) {
			t.Errorf("from %d on: %q", first, got)
		}
	}
	if c.Keeper = false; c.portsBelow(1024) != nil {
		t.Error("without a keeper it may")
	}
	for _, err := range []error{
		ListenError("http", ":80", fmt.Errorf("listen: %w", syscall.EACCES)), PortError("peer-port", "::", 80, syscall.EACCES),
	} {
		bad, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(bad.Hint, "no capability") || !strings.Contains(bad.Hint, "ip_unprivileged_port_start") {
			t.Errorf("%v", err)
		}
	}
}
