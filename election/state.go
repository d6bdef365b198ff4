package election

import (
	"maps"
	"slices"
	"time"
)

// Grant is one voter's durable promise in one election: this term belongs to
// this holder, and nobody else is granted while its lease may run.
type Grant struct {
	Term     Term          `cbor:"1,keyasint"`
	Holder   Holder        `cbor:"2,keyasint"`
	Lease    time.Duration `cbor:"3,keyasint"` // nanoseconds
	Released bool          `cbor:"4,keyasint,omitempty"`
}

// State is everything an agent must not forget: written, and only then acted
// upon.
type State struct {
	Peer    PeerID         `cbor:"1,keyasint"` // whose promises these are
	Roster  *Roster        `cbor:"2,keyasint,omitempty"`
	Pending *Genesis       `cbor:"3,keyasint,omitempty"` // accepted, not yet committed
	Grants  map[Name]Grant `cbor:"4,keyasint,omitempty"`
	Seen    map[Name]Term  `cbor:"5,keyasint,omitempty"` // highest term led without quorum; best effort
	Attempt uint64         `cbor:"6,keyasint,omitempty"` // genesis attempts this agent has made
	// Forgotten is the highest term of the grants that were dropped to make room
	// for other elections. Every election not on record counts as granted up to
	// it: its terms never start again.
	Forgotten Term `cbor:"7,keyasint,omitempty"`
	// Writes counts the writes of this state, this one included.
	Writes uint64 `cbor:"8,keyasint,omitempty"`
	// Former is the roster that was held before one was taken over, at a peer's
	// word, that drops several of its voters; nil once this voter accepted another.
	// Refused is one that an operator went back from: it is not taken over again.
	Former  *Roster `cbor:"10,keyasint,omitempty"`
	Refused Version `cbor:"11,keyasint,omitzero"`
}

// Grant returns what is on record of the election. One that is not was never
// granted, or was and is forgotten: then that term is over for everybody.
func (s *State) Grant(name Name) Grant {
	if g, onRecord := s.Grants[name]; onRecord {
		return g
	}
	return Grant{Term: s.Forgotten, Released: true}
}

// Clone returns a copy that shares nothing that changes.
func (s State) Clone() State {
	s.Grants = maps.Clone(s.Grants)
	s.Seen = maps.Clone(s.Seen)
	return s
}

// Elections returns the elections with a grant on record, sorted.
func (s State) Elections() []Name { return slices.Sorted(maps.Keys(s.Grants)) }
