package hosts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/testbed/netns"
)

const (
	// MaxAgents is how many agents a cluster can have.
	MaxAgents = 128
	// maxVoters keeps rosters of a size that people run; the agents after them
	// are candidates that do not vote.
	maxVoters = 7
)

const letters = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu " +
	"nu xi omicron pi rho sigma tau upsilon phi chi psi omega"

// Net is what joins the hosts of a cluster.
type Net int

const (
	// Loopback gives each an address of the loopback interface; their links
	// can't be touched.
	Loopback Net = iota
	// Namespaces gives each a network namespace with an address of its own, and
	// a switch whose links can be delayed, made lossy and cut.
	Namespaces
)

// BestNet returns Namespaces where they can be made, else Loopback and why they
// can't. As a user, see netns.Rerun first.
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
	// Seed is what random faults of the network follow from.
	Seed uint64
	// DiskFaults lets disks be filled and slowed. Data directories lie on small
	// file systems in memory (with Namespaces; on Loopback they can't be filled),
	// whose own fsync costs nothing, and each fsync asks the testbed first.
	DiskFaults bool
	// Adjust, if not nil, may change the configuration of the i-th agent.
	Adjust func(i int, c *agent.Config)
	// OnExit, if not nil, is called with every end of a process, in a goroutine of
	// that process's.
	OnExit func(Exit)
}

// Check reports what can't be run, naming the flag to blame.
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

// Names returns what the agents are called, in their order: by the letters, and
// after omega comes alpha2.
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
func (c Config) common() agent.Config {
	config := agent.Default()
	config.Name, config.Cluster = "common", "testbed"
	config.DataDir, config.Socket = "/data", "/socket" // each agent gets its own
	config.Algorithm, config.Profile, config.Quorum = c.Algorithm, c.Profile, c.Quorum
	config.Keeper = false // what kills an agent is to see what that costs the others
	if c.LogLevel != "" {
		config.LogLevel = c.LogLevel
	}
	return config
}
