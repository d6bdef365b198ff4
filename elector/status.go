package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Status is an immutable picture of one agent's part in everything, for
// readers outside the loop. Deadlines are instants, so a reader computes what
// remains of a lease when it answers, and a stuck loop never claims leadership.
type Status struct {
	At       election.Instant // when it was taken
	Self     election.Holder
	Draining bool
	Quorum   QuorumStatus
	Roster   *election.Roster       // nil before genesis is committed
	Change   *election.ChangeStatus // of the voters; nil: none is under way
	Contests []*ContestStatus       // sorted by election
	Warnings []Warning              // sorted by code
	Counters Counters
}

// QuorumStatus is whether a majority of the voters can be reached.
type QuorumStatus struct {
	Enabled   bool
	Voters    int
	Needed    int
	Reachable int  // connected, not suspected, and renews what this agent leads; self included
	Exists    bool // the reachable voters form a majority (of both halves)
	Edge      bool // it exists, and one more loss may end it
}

// ContestStatus is one election as this agent knows it.
type ContestStatus struct {
	Election   election.Name
	State      State
	Leader     election.Holder // zero when nobody is known to lead
	Term       election.Term   // the leader's, or the last one known
	ValidUntil election.Instant
	HeardAt    election.Instant  // when the leader's claim was last renewed here
	Candidates []election.PeerID // that can be elected, best first
}

// State is this agent's part in one election.
type State string

const (
	Idle      State = "idle"      // no leader, and nobody can be elected
	Following State = "following" // another agent leads
	Electing  State = "electing"  // selection or voting is under way, or awaited
	Leading   State = "leading"   // this agent leads, inside its lease
	NoQuorum  State = "no_quorum" // no leader, and no majority of the voters can be reached
)

// LeaderAt returns the leader at that instant: none once the lease ended.
func (c ContestStatus) LeaderAt(now election.Instant) (election.Holder, bool) {
	if c.Leader == (election.Holder{}) || now >= c.ValidUntil {
		return election.Holder{}, false
	}
	return c.Leader, true
}

// Warning is a condition that an operator should end, in facts; the agent puts
// them into words (agent/words). There is one for each agent that it is about.
type Warning struct {
	Code    string          // stable
	Agent   string          // the name of the agent it is about; empty: this one
	Peer    election.PeerID // the identity that the roster lists under that name
	Cluster string          // that the agent belongs to
	Own     string          // and the one that this agent belongs to
	Former  bool            // this agent may have been a voter of that cluster
	Voters  string          // that the agent reports, or this one was started with
	Doubt   Doubt           // why they are not adopted
	Forming quorum.Problem  // why there is no roster yet
	Barred  election.Barred
}

// Doubt is why a newer roster is not adopted.
type Doubt uint8

const (
	Refused     Doubt = iota + 1 // by an operator
	FromUnknown                  // no voter that this agent knows has reported it
	DropsMany                    // voters at once, and a majority still holds the present one
	OtherDriver                  // the agent that proposes it is not a voter that this one knows
)

// Counters count what happened since the start; they only rise.
type Counters struct {
	Steps         uint64
	Sent          map[string]uint64 // by message
	Received      map[string]uint64 // by message
	Dropped       map[string]uint64 // by why
	VotesGranted  uint64
	VotesRefused  uint64
	Rounds        uint64 // selections begun
	Attempts      uint64 // nominations that asked for votes
	TermsWon      uint64
	LeasesExpired uint64
	Suspicions    uint64
}
