package hosts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"

	"github.com/doyen-election/doyen/agent/settings"
)

type place struct {
	addr         netip.Addr
	gossip, peer int
}

// places finds a free place for each of n agents. On Linux, where all of 127.0.0.0/8 is this
// machine, each agent gets an address of its own and the usual ports. Elsewhere all agents
// share 127.0.0.1, and each gets ports of its own.
//
// Another program could take a place before its agent does. The agent then reports that and
// ends.
func places(n int) ([]place, error) {
	if runtime.GOOS != "linux" {
		return portsOf(netip.AddrFrom4([4]byte{127, 0, 0, 1}), n)
	}
	const tries = 20
	var err error
	for range tries {
		// Random, so that two testbeds at once do not meet; 127.0.x.x is left to others.
		a, b := byte(1+rand.IntN(254)), byte(rand.IntN(255))
		found := make([]place, n)
		for i := range found {
			found[i] = place{netip.AddrFrom4([4]byte{127, a, b, byte(1 + i)}), settings.DefaultGossipPort, settings.DefaultPeerPort}
		}
		if err = free(found); err == nil {
			return found, nil
		}
	}
	// All tries failed: a program on 0.0.0.0, perhaps an agent, has the usual ports.
	found, portErr := portsOf(netip.AddrFrom4([4]byte{127, 0, 0, 1}), n)
	if portErr != nil {
		return nil, errors.Join(err, portErr)
	}
	return found, nil
}

func free(places []place) error {
	for _, p := range places {
		for _, port := range []int{p.gossip, p.peer} {
			stop, _, err := listen(p.addr, port)
			if err != nil {
				return err
			}
			stop()
		}
	}
	return nil
}

// portsOf lets the system choose two free ports for each of n agents. It holds all ports until
// the last one is chosen, so that no two are the same.
func portsOf(addr netip.Addr, n int) ([]place, error) {
	found := make([]place, n)
	for i := range found {
		found[i].addr = addr
		for _, port := range []*int{&found[i].gossip, &found[i].peer} {
			stop, chosen, err := listen(addr, 0)
			if err != nil {
				return nil, err
			}
			defer stop()
			*port = chosen
		}
	}
	return found, nil
}

// listen takes a port for TCP and UDP. Port 0 stands for any free one.
func listen(addr netip.Addr, port int) (stop func(), chosen int, err error) {
	stream, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(port))))
	if err != nil {
		return nil, 0, fmt.Errorf("find a free port: %w", err)
	}
	chosen = stream.Addr().(*net.TCPAddr).Port
	packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(chosen))))
	if err != nil {
		stream.Close()
		return nil, 0, fmt.Errorf("find a free port: %w", err)
	}
	return func() { stream.Close(); packets.Close() }, chosen, nil
}
