package elector

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Algorithm is a way to select who should lead.
type Algorithm string

const (
	Bully Algorithm = "bully"
	Ring  Algorithm = "ring"
)

// Config is how one agent's elector starts. Only the input Configure changes any of it.
type Config struct {
	Self         election.Holder
	Run          election.RunID // of this process; 0: the lineage's number
	Life         uint64         // the number of this life in its lineage; the first is 1
	Name         string         // this agent's, as the roster knows it
	JoinedAt     int64          // Unix nanoseconds, as gossip shows it to others
	Quorum       bool
	Algorithm    Algorithm
	Timing       Timing
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
}

// livesApart is by how much two lives differ in the numbers of their sends, rounds and
// candidacies. No life uses so many.
const livesApart = 1 << 40

// runOf returns the run ID that was sent; 0 is the first life's, whose run ID names the lineage.
func runOf(run election.RunID, of election.LineageID) election.RunID {
	return cmp.Or(run, election.RunID(of))
}

// firstNumber is the bound above which this life's numbers lie, but none of its former lives'.
func (c Config) firstNumber() uint64 { return c.Life * livesApart }

// DefaultDrift bounds how far a clock's rate may stray from real time.
const DefaultDrift = 0.01

// Validate checks the inequalities that the protocol's timing rests on.
func (c Config) Validate() error {
	switch {
	case c.Self.Peer == "":
		return errors.New("validate elector config: no peer ID")
	case c.Life >= 1<<63/livesApart:
		return fmt.Errorf("validate elector config: there can't be a life %d", c.Life)
	case c.Algorithm != Bully && c.Algorithm != Ring:
		return fmt.Errorf("validate elector config: unknown algorithm %q", c.Algorithm)
	case c.Timing.Heartbeat < time.Microsecond: // Ring divides it
		return fmt.Errorf("validate elector config: heartbeat %s is below 1µs", c.Timing.Heartbeat)
	case !quorum.Fits(c.Timing.Heartbeat, c.Timing.Lease):
		return fmt.Errorf("validate elector config: heartbeat %s must be below a third of lease %s", c.Timing.Heartbeat, c.Timing.Lease)
	case c.Timing.Lease > election.MaxLease:
		return fmt.Errorf("validate elector config: lease %s is above %s", c.Timing.Lease, election.MaxLease)
	case c.MaxElections != 0 && (c.MaxElections < 2 || c.MaxElections > election.MaxElections):
		return fmt.Errorf("validate elector config: %d elections: want 2 to %d, or 0", c.MaxElections, election.MaxElections)
	case c.Drift < 0 || c.Drift > 0.1:
		return fmt.Errorf("validate elector config: drift %g is not between 0 and 0.1", c.Drift)
	}
	return nil
}

// Timing is the durations everything else follows from.
type Timing struct {
	Heartbeat    time.Duration
	Lease        time.Duration
	DiskPatience time.Duration // 0: five leases, and five seconds at least
}
