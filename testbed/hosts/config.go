package hosts

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/netns"
)

const (
	// MaxAgents is how many agents a cluster can have.
	MaxAgents = 128
	// maxVoters keeps rosters at a size that is usual in practice. The agents after the first
	// maxVoters are observers: they can lead, and do not vote.
	maxVoters = 7
)

const letters = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu " +
	"nu xi omicron pi rho sigma tau upsilon phi chi psi omega"

// Net is what joins the hosts of a cluster.
type Net int

const (
	// Loopback gives each host an address of the loopback interface. Its links can't be
	// touched.
	Loopback Net = iota
	// Namespaces gives each host a network namespace with an address of its own. A switch
	// joins them, and its links can be delayed, made lossy and cut.
	Namespaces
)

// BestNet returns Namespaces if they can be made here, else Loopback and the reason. A caller
// without root's rights should call netns.Rerun first.
func BestNet() (Net, error) {
	if err := netns.Check(); err != nil {
		return Loopback, err
	}
	return Namespaces, nil
}

type Config struct {
	Agents    int    // 1 to MaxAgents
	Algorithm string // bully or ring
	Profile   string // local, lan or wan
	Quorum    bool
	Program   Program
	// Net joins the hosts; the zero value is Loopback.
	Net Net
	// Seed determines the random faults of the network.
	Seed uint64
	// DiskFaults lets disks be slowed and, with Namespaces, filled. Each fsync then asks the
	// testbed first. With Namespaces, data directories lie on small file systems in memory,
	// whose own fsync costs nothing.
	DiskFaults bool
	// Adjust, if not nil, may change the configuration of the i-th agent.
	Adjust func(i int, c *settings.Config)
	// OnExit, if not nil, is called after each end of an agent's process. Each call has its own
	// goroutine.
	OnExit func(Exit)
}

// Check returns an error if the configuration can't be run. The error names the flag to blame.
func (c Config) Check() error {
	if c.Agents < 1 || c.Agents > MaxAgents {
		return fmt.Errorf("--agents: %d agents, 1 to %d can be run", c.Agents, MaxAgents)
	}
	resolved, err := c.common().Resolve()
	if err != nil {
		return err
	}
	return resolved.Validate()
}

// Names returns the names of the agents, in order: the Greek letters, then alpha2, beta2 and
// so on.
func (c Config) Names() []string {
	first := strings.Fields(letters)
	names := first
	for i := len(first); i < MaxAgents; i++ {
		names = append(names, first[i%len(first)]+strconv.Itoa(1+i/len(first)))
	}
	return names[:min(max(c.Agents, 0), MaxAgents)]
}

// Lease is the agents' lease, 0 for an unknown profile.
func (c Config) Lease() time.Duration {
	resolved, err := c.common().Resolve()
	if err != nil {
		return 0
	}
	return resolved.Lease
}

// common is what the configurations of all agents share.
func (c Config) common() settings.Config {
	config := settings.Default()
	config.Name, config.Cluster = "common", "testbed"
	config.DataDir, config.Socket = "/data", "/socket" // each agent gets its own
	config.Algorithm, config.Profile, config.Quorum = c.Algorithm, c.Profile, c.Quorum
	config.Keeper = false // so that a killed agent stays dead, and the loss of it can be measured
	return config
}

type place struct {
	addr         netip.Addr
	gossip, peer int
}

// places finds a free place for each of n agents. On Linux, where all of 127.0.0.0/8 is this
// machine, each agent gets an address of its own; elsewhere all agents share 127.0.0.1. Each gets the
// usual ports where they are free: another agent, or a program on 0.0.0.0, may have them.
//
// Another program could take a place before its agent does. The agent then reports that and
// ends.
func places(n int) ([]place, error) {
	// Random, so that two testbeds at once get different addresses; 127.0.x.x is left to other programs.
	a, b := byte(1+rand.IntN(254)), byte(rand.IntN(255))
	found := make([]place, n)
	for i := range found {
		p := place{netip.AddrFrom4([4]byte{127, 0, 0, 1}), settings.DefaultGossipPort, settings.DefaultPeerPort}
		if runtime.GOOS == "linux" {
			p.addr = netip.AddrFrom4([4]byte{127, a, b, byte(1 + i)})
		}
		for _, port := range []*int{&p.gossip, &p.peer} {
			stop, chosen, err := listen(p.addr, *port)
			if err != nil {
				stop, chosen, err = listen(p.addr, 0)
			}
			if err != nil {
				return nil, err
			}
			defer stop() // only when the last one is chosen, so that no two are the same
			*port = chosen
		}
		found[i] = p
	}
	return found, nil
}

// listen takes a port for TCP and UDP. Port 0 means any free port.
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
