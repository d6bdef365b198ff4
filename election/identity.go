package election

import (
	"cmp"
	"fmt"
	"time"
)

// Instant is nanoseconds of the local CLOCK_BOOTTIME. Instants of different
// hosts are not comparable.
type Instant int64

// Never is an instant that does not come: no wake-up is wanted.
const Never Instant = 1<<63 - 1

// Add returns the instant d later. Never stays Never.
func (i Instant) Add(d time.Duration) Instant {
	if i == Never {
		return Never
	}
	return i + Instant(d)
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Earliest returns the first of the given instants, Never if there is none.
func Earliest(instants ...Instant) Instant {
	first := Never
	for _, i := range instants {
		first = min(first, i)
	}
	return first
}

// PeerID is an agent's libp2p peer ID in its text form: the hash of its public
// key, and so its identity across restarts.
type PeerID string

// BootID tells one run of an agent from the next. It is drawn at random at
// every process start.
type BootID uint64

func (b BootID) String() string { return fmt.Sprintf("%016x", uint64(b)) }

// Holder is who can hold a term: one run of one agent. A restarted agent is
// another holder than its former life.
type Holder struct {
	Peer PeerID `cbor:"1,keyasint"`
	Boot BootID `cbor:"2,keyasint"`
}

func (h Holder) String() string { return fmt.Sprintf("%s/%s", h.Peer, h.Boot) }

// Name names one election, such as "default" or "payments".
type Name string

const (
	// Default is the election an agent stands in on behalf of its host.
	Default Name = "default"
	// RosterElection is the system election whose leader changes the roster.
	// Its name can't be chosen by users: it does not match ValidName.
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

// Term numbers an authority in one election. It only rises, and is the fencing
// token: a resource that has seen a term refuses every lower one.
type Term uint64

// MaxTerm is the highest term that is granted, sent or kept.
const MaxTerm Term = 1 << 61

// maxLeap is how far one term may be above those known: terms rise by one with each
// attempt, so what is farther away is a defect, and would use the numbers up.
const maxLeap Term = 1 << 32

// Follows reports whether the term may come after a known one.
func (t Term) Follows(known Term) bool {
	return t <= MaxTerm && (t <= known || t-known <= maxLeap)
}

// MaxLease is the longest lease that agents may use.
const MaxLease = 10 * time.Minute

// Rank orders the candidates of an election; the highest should lead. It is a
// total order: priority, then seniority, then peer ID.
type Rank struct {
	Priority int    `cbor:"1,keyasint"` // 0 never leads
	JoinedAt int64  `cbor:"2,keyasint"` // Unix nanoseconds of its start; the older is senior
	Peer     PeerID `cbor:"3,keyasint"`
}

// Compare returns +1 if r ranks higher than s, -1 if lower, 0 if they are the
// same.
func (r Rank) Compare(s Rank) int {
	return cmp.Or(
		cmp.Compare(r.Priority, s.Priority),
		cmp.Compare(s.JoinedAt, r.JoinedAt),
		cmp.Compare(r.Peer, s.Peer),
	)
}

// Above reports whether r ranks higher than s.
func (r Rank) Above(s Rank) bool { return r.Compare(s) > 0 }

// DefaultPriority is the priority of a candidate that states none.
const DefaultPriority = 100

// MaxPriority is the highest priority a candidate can have.
const MaxPriority = 1_000_000
