package hosts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/netns"
)

const (
	// MaxAgents is how many agents a cluster can have.
	MaxAgents = 128
	// maxVoters keeps rosters at a size that people run. The agents after the first maxVoters
	// are candidates that do not vote.
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

// BestNet returns Namespaces where they can be made, else Loopback and why they can't. A
// caller without root's rights should call netns.Rerun first.
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
	LogLevel  string // of the agents' logs; "" is info
	Program   Program
	// Net joins the hosts; the zero value is Loopback.
	Net Net
	// Seed is what the random faults of the network follow from.
	Seed uint64
	// DiskFaults lets disks be slowed and, with Namespaces, filled. Each fsync then asks the
	// testbed first. With Namespaces, data directories lie on small file systems in memory,
	// whose own fsync costs nothing.
	DiskFaults bool
	// Adjust, if not nil, may change the configuration of the i-th agent.
	Adjust func(i int, c *settings.Config)
	// OnExit, if not nil, is called after each end of an agent's process. Each call is in
	// another goroutine.
	OnExit func(Exit)
}

// Check returns an error if the configuration can't be run. It names the flag to blame.
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
	config.Keeper = false // a killed agent must stay dead, to show what that costs the others
	if c.LogLevel != "" {
		config.LogLevel = c.LogLevel
	}
	return config
}
