package election

import (
	"cmp"
	"fmt"
	"time"
)

type Instant int64

// Never is an instant that does not come.
const Never Instant = 1<<63 - 1

// Add returns the instant d later. Never stays Never.
func (i Instant) Add(d time.Duration) Instant {
	if i == Never {
		return Never
	}
	return i + Instant(d)
}

func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// PeerID is an agent's identity: its libp2p peer ID as text, derived from its key.
type PeerID string

// LineageID identifies one lineage: the lives (runs of the process) of one agent under one kernel, each
// started with the record of the one before. It is the RunID of the first life.
type LineageID uint64

func (l LineageID) String() string { return fmt.Sprintf("%016x", uint64(l)) }

// RunID identifies one life, that is one process run of an agent. It is drawn at random, and
// never 0.
type RunID uint64

func (r RunID) String() string { return fmt.Sprintf("%016x", uint64(r)) }

// Holder is one lineage of one agent. Terms are granted to a Holder.
type Holder struct {
	Peer    PeerID    `cbor:"1,keyasint"`
	Lineage LineageID `cbor:"2,keyasint"`
}

func (h Holder) String() string { return fmt.Sprintf("%s/%s", h.Peer, h.Lineage) }

// Name names one election, such as "default" or "payments".
type Name string

const (
	// Default is the election in which an agent is a candidate on behalf of its host.
	Default Name = "default"
	// RosterElection is the election whose leader changes the roster. Users can't
	// choose its name: ValidName refuses it.
	RosterElection Name = "_roster"
)

// ValidName reports whether s may name an election or an agent:
// [a-z0-9][a-z0-9._-]{0,62}.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

const maxName = 63

// Term numbers the leaderships of one election. It only rises, and is the fencing
// token: a resource that has seen a term refuses every lower one.
type Term uint64

// MaxTerm is the highest term that is granted, sent or kept.
const MaxTerm Term = 1 << 61

// maxLeap is how far a new term may be above the known ones. Terms rise by one with each bid, so a
// term farther above comes from a defect. Accepting it would use up the numbers.
const maxLeap Term = 1 << 32

// Follows reports whether t may be accepted, given the highest term known so far.
func (t Term) Follows(known Term) bool {
	return t <= MaxTerm && (t <= known || t-known <= maxLeap)
}

// MaxLease is the longest lease that agents may use.
const MaxLease = 10 * time.Minute

// Rank orders candidates by priority, then seniority, then peer ID. The highest rank should lead.
type Rank struct {
	Priority int    `cbor:"1,keyasint"` // 0: it never leads
	JoinedAt int64  `cbor:"2,keyasint"` // Unix nanoseconds of the agent's start; an earlier start ranks higher
	Peer     PeerID `cbor:"3,keyasint"`
}

// Compare returns +1 if r ranks higher than s, -1 if lower, 0 if they are equal.
func (r Rank) Compare(s Rank) int {
	return cmp.Or(
		cmp.Compare(r.Priority, s.Priority),
		cmp.Compare(s.JoinedAt, r.JoinedAt),
		cmp.Compare(r.Peer, s.Peer),
	)
}

func (r Rank) Above(s Rank) bool { return r.Compare(s) > 0 }

// DefaultPriority is the priority of a candidate that does not state one.
const DefaultPriority = 100

// MaxPriority is the highest priority a candidate can have.
const MaxPriority = 1_000_000
