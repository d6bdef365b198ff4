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

// Config is how one agent starts. All parts of its elector read one copy, in which the input
// Configure changes how it preempts, and the roster's settings the algorithm and the timing.
type Config struct {
	Self      Holder
	Run       RunID  // of this process; 0: the lineage's number
	Life      uint64 // the number of this life in its lineage; the first is 1
	Name      string // this agent's, as the roster knows it
	JoinedAt  int64  // Unix nanoseconds, as gossip shows it to others
	Quorum    bool
	Algorithm string // Bully or Ring
	Timing
	Drift        float64 // every clock runs within 1 ± Drift of real time
	Preempt      bool    // transfer to a strictly higher priority
	PreemptDelay time.Duration
	// Voters are the names of the first roster, the proposer first. Empty: a roster of this
	// agent alone if Alone, else none until another agent reports it.
	Voters []string
	Alone  bool
	// MaxElections bounds the elections that this agent keeps, the roster election included; 0:
	// as many as fit into a message. New elections replace those without candidates.
	MaxElections int
	Rand         *rand.Rand // for retries and the names of clusters
}

// Timing is the durations everything else follows from.
type Timing struct {
	Heartbeat    time.Duration
	Lease        time.Duration
	DiskPatience time.Duration // 0: five leases, and five seconds at least
}

// DefaultDrift bounds how far a clock's rate may stray from real time.
const DefaultDrift = 0.01

// livesApart is by how much two lives differ in the numbers of their sends, rounds and
// candidacies. No life uses so many.
const livesApart = 1 << 40

// FirstNumber is the bound above which this life's numbers lie, but none of its former lives'.
func (c *Config) FirstNumber() uint64 { return c.Life * livesApart }

// Validate checks the inequalities that the protocol's timing rests on.
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

// VoteTimeout is how long a voter keeps a request that it can't grant yet. Once the old lease
// has expired, others wait for a nominee for as long.
func (c *Config) VoteTimeout() time.Duration { return 2 * c.Heartbeat }

// Stagger is how much longer each candidate waits for its turn than the next better one.
func (c *Config) Stagger() time.Duration { return c.Heartbeat / 4 }

// Jitter draws a time up to d.
func (c *Config) Jitter(d time.Duration) time.Duration {
	return time.Duration(c.Rand.Int64N(int64(d) + 1))
}

// Settings are those that a roster may replace.
func (c *Config) Settings() Settings { return Settings{Algorithm: c.Algorithm, Lease: c.Lease} }
