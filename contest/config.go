package contest

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Config is shared by all contests of an agent. While it runs, only Preempt, PreemptDelay and, by
// the roster, Heartbeat and Lease change.
type Config struct {
	Self         election.Holder
	JoinedAt     int64 // Unix nanoseconds, as gossip reports it
	Quorum       bool
	Heartbeat    time.Duration
	Lease        time.Duration
	Drift        float64 // every clock runs within 1 ± Drift of real time
	Preempt      bool    // transfer to a strictly higher priority
	PreemptDelay time.Duration
	Rand         *rand.Rand
}

// VoteTimeout is how long a voter keeps a request that it can't grant yet. Once the old lease
// has expired, others wait for a nominee for as long.
func (c *Config) VoteTimeout() time.Duration { return 2 * c.Heartbeat }

// disputeTime is how long a leader stays in a term that a reachable voter can't renew. After
// that time the bid that this voter voted for has ended.
func (c *Config) disputeTime() time.Duration { return c.VoteTimeout() + c.Heartbeat }

// Stagger is how much longer each candidate waits for its turn than the next better one.
func (c *Config) Stagger() time.Duration { return c.Heartbeat / 4 }

// guard is the time between a leader's step-down and the end of its lease. To start to lead,
// more than this must be left of a lease.
func (c *Config) guard() time.Duration { return c.Stagger() }

// transferStandDown is how long a leader that transfers lets its target go first.
func (c *Config) transferStandDown() time.Duration { return 2 * c.VoteTimeout() }

// holdOutlived is how long a new leadership can do without a vote that a hold keeps back: its
// first lease, less some slack.
func (c *Config) holdOutlived() time.Duration {
	return quorum.HolderLease(c.Lease, c.Drift) - 2*c.guard()
}

func (c *Config) Jitter(d time.Duration) time.Duration {
	return time.Duration(c.Rand.Int64N(int64(d) + 1))
}
