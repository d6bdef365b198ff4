package hosts

import (
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
)

const (
	// MaxAgents is how many agents a cluster can have.
	MaxAgents = 24
	// maxVoters keeps rosters of a size that people run; the agents after them
	// are candidates that do not vote.
	maxVoters = 7
)

const letters = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu " +
	"nu xi omicron pi rho sigma tau upsilon phi chi psi omega"

// Config says which agents to run.
type Config struct {
	Agents    int    // 1 to MaxAgents
	Algorithm string // bully or ring
	Profile   string // local, lan or wan
	Quorum    bool
	LogLevel  string // of the agents' logs; "" is info
	Program   Program
	// OnExit, if not nil, is told of every end of a process, in a goroutine of
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

// Names returns what the agents are called, in their order.
func (c Config) Names() []string { return strings.Fields(letters)[:min(max(c.Agents, 0), MaxAgents)] }

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
	if c.LogLevel != "" {
		config.LogLevel = c.LogLevel
	}
	return config
}
