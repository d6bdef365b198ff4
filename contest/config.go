package contest

import (
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Config is shared by all contests of an agent, and does not change while it runs.
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

// VoteTimeout is how long a voter keeps a request that it can't grant yet, and how long
// others wait for a nominee once the old lease has expired.
func (c *Config) VoteTimeout() time.Duration { return 2 * c.Heartbeat }

// disputeTime is how long a leader stays in a term that a reachable voter can't renew: by
// then the bid that it voted for has ended.
func (c *Config) disputeTime() time.Duration { return c.VoteTimeout() + c.Heartbeat }

// Stagger is how much longer than the next better candidate each waits for its turn.
func (c *Config) Stagger() time.Duration { return c.Heartbeat / 4 }

// guard is how long before its lease ends a leader steps down, and how much of a lease must
// be left to start to lead.
func (c *Config) guard() time.Duration { return c.Stagger() }

// transferStandDown is how long a leader that transfers lets its target go first.
func (c *Config) transferStandDown() time.Duration { return 2 * c.VoteTimeout() }

// holdOutlived is the rest of a hold that a new leadership can wait out without the vote
// that is held: its first lease, less some slack.
func (c *Config) holdOutlived() time.Duration {
	return quorum.HolderLease(c.Lease, c.Drift) - 2*c.guard()
}

func (c *Config) Jitter(d time.Duration) time.Duration {
	return time.Duration(c.Rand.Int64N(int64(d) + 1))
}
