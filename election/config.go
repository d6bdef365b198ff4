package election

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// The algorithms that select who should lead.
const (
	Bully = "bully"
	Ring  = "ring"
)

// Config is what one agent starts with. All parts of its elector, except the voter, share one Config. The input
// Configure changes its preemption settings, and a roster's Settings replace its algorithm and timing.
type Config struct {
	Self      Holder
	Run       RunID  // of this process; 0: it equals the lineage ID
	Life      uint64 // the number of this life in its lineage; the first is 1
	Name      string // this agent's, as the roster knows it
	JoinedAt  int64  // Unix nanoseconds, as gossip shows it to others
	Quorum    bool
	Algorithm string // Bully or Ring
	Timing
	Drift        float64 // every clock runs within 1 ± Drift of real time
	Preempt      bool    // transfer to a strictly higher priority
	PreemptDelay time.Duration
	// Voters are the names of the first roster, the proposer first. If there are none, the agent makes a
	// roster of itself if Alone; otherwise it waits until another agent reports a roster.
	Voters []string
	Alone  bool
	// MaxElections bounds how many elections this agent keeps, the roster election included. 0:
	// as many as fit into a message. A new election replaces one that has no candidates.
	MaxElections int
	Rand         *rand.Rand // for delays before retries, and for the names of clusters
}

// Timing has the durations from which all other durations are derived.
type Timing struct {
	Heartbeat    time.Duration
	Lease        time.Duration
	DiskPatience time.Duration // how long a write may take; 0: five leases, and at least five seconds
}

// DefaultDrift bounds how far a clock's rate may stray from real time.
const DefaultDrift = 0.01

// livesApart separates the lives of an agent: the sends, rounds and candidacies of life n are
// numbered from n * livesApart. No life uses so many numbers.
const livesApart = 1 << 40

// FirstNumber is below all numbers of this life. No number of a former life is above it.
func (c *Config) FirstNumber() uint64 { return c.Life * livesApart }

// Validate checks the configuration, also the inequalities that the protocol's timing rests on.
func (c *Config) Validate() error {
	switch {
	case c.Self.Peer == "":
		return errors.New("validate elector config: no peer ID")
	case c.Life >= 1<<63/livesApart:
		return fmt.Errorf("validate elector config: there can't be a life %d", c.Life)
	case c.Algorithm != Bully && c.Algorithm != Ring:
		return fmt.Errorf("validate elector config: unknown algorithm %q", c.Algorithm)
	case c.Heartbeat < time.Microsecond: // Ring divides it
		return fmt.Errorf("validate elector config: heartbeat %s is below 1µs", c.Heartbeat)
	case !Fits(c.Heartbeat, c.Lease):
		return fmt.Errorf("validate elector config: heartbeat %s must be below a third of lease %s", c.Heartbeat, c.Lease)
	case c.Lease > MaxLease:
		return fmt.Errorf("validate elector config: lease %s is above %s", c.Lease, MaxLease)
	case c.MaxElections != 0 && (c.MaxElections < 2 || c.MaxElections > MaxElections):
		return fmt.Errorf("validate elector config: %d elections: want 2 to %d, or 0", c.MaxElections, MaxElections)
	case c.Drift < 0 || c.Drift > 0.1:
		return fmt.Errorf("validate elector config: drift %g is not between 0 and 0.1", c.Drift)
	}
	return nil
}

// Fits reports whether heartbeats renew a lease in time, even if one is lost.
func Fits(heartbeat, lease time.Duration) bool { return heartbeat*3 < lease }

// VoteTimeout is how long a voter keeps a request that it can't grant yet. When the old lease has
// expired, other candidates give a nominee this much time to become the leader.
func (c *Config) VoteTimeout() time.Duration { return 2 * c.Heartbeat }

// Stagger is a candidate's extra delay for each candidate that ranks above it.
func (c *Config) Stagger() time.Duration { return c.Heartbeat / 4 }

// Jitter draws a random duration from 0 to d.
func (c *Config) Jitter(d time.Duration) time.Duration {
	return time.Duration(c.Rand.Int64N(int64(d) + 1))
}

// Settings are the configured values that a roster's settings may replace.
func (c *Config) Settings() Settings { return Settings{Algorithm: c.Algorithm, Lease: c.Lease} }
