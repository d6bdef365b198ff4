package election

import (
	"maps"
	"slices"
	"time"
)

// Grant is a voter's record in one election: the term belongs to the holder, and no other
// holder gets a grant while the lease may run.
type Grant struct {
	Term     Term          `cbor:"1,keyasint"`
	Holder   Holder        `cbor:"2,keyasint"`
	Lease    time.Duration `cbor:"3,keyasint"` // nanoseconds
	Released bool          `cbor:"4,keyasint,omitempty"`
}

// State is what an agent must not forget. It is written before anything depends on it.
type State struct {
	Peer    PeerID         `cbor:"1,keyasint"` // whose promises these are
	Roster  *Roster        `cbor:"2,keyasint,omitempty"`
	Pending *Genesis       `cbor:"3,keyasint,omitempty"` // accepted, not yet committed
	Grants  map[Name]Grant `cbor:"4,keyasint,omitempty"`
	Seen    map[Name]Term  `cbor:"5,keyasint,omitempty"` // highest term led without quorum; best effort
	Attempt uint64         `cbor:"6,keyasint,omitempty"` // genesis attempts this agent has made
	// Forgotten is the highest term of the grants that were dropped, to make room for other
	// elections. In every election without a record, all terms up to it count as granted.
	Forgotten Term   `cbor:"7,keyasint,omitempty"`
	Writes    uint64 `cbor:"8,keyasint,omitempty"` // how often the state was written, this time included
	// Former is the roster that this agent had before it adopted one without several of the
	// voters; nil once this voter has accepted another roster. Refused is the version from
	// which an operator went back: it is not adopted again.
	Former  *Roster `cbor:"10,keyasint,omitempty"`
	Refused Version `cbor:"11,keyasint,omitzero"`
}

// Grant returns the record of an election. Without one, every term up to Forgotten counts
// as granted and released.
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

func (s State) Elections() []Name { return slices.Sorted(maps.Keys(s.Grants)) }
