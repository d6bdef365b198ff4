package settings

import (
	"net"
	"net/netip"
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
