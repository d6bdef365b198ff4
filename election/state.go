package election

import (
	"maps"
	"slices"
	"time"
)

// Grant is what a voter has on record in one election: Term belongs to Holder, and no other
// holder gets a grant while the lease may still run.
type Grant struct {
	Term     Term          `cbor:"1,keyasint"`
	Holder   Holder        `cbor:"2,keyasint"`
	Lease    time.Duration `cbor:"3,keyasint"` // nanoseconds
	Released bool          `cbor:"4,keyasint,omitempty"`
}

// State is what an agent must not forget. It is on disk before any message depends on it.
type State struct {
	Peer    PeerID         `cbor:"1,keyasint"` // the agent that made these promises
	Roster  *Roster        `cbor:"2,keyasint,omitempty"`
	Pending *Genesis       `cbor:"3,keyasint,omitempty"` // a genesis that this agent has accepted, and that is not committed yet
	Grants  map[Name]Grant `cbor:"4,keyasint,omitempty"`
	Seen    map[Name]Term  `cbor:"5,keyasint,omitempty"` // the highest term led without quorum; a crash may have lost the last terms
	Attempt uint64         `cbor:"6,keyasint,omitempty"` // how many times this agent has proposed a genesis
	// Forgotten is the highest term of all grants that were dropped to make room for other elections. In an
	// election without a grant on record, all terms up to Forgotten count as granted.
	Forgotten Term   `cbor:"7,keyasint,omitempty"`
	Writes    uint64 `cbor:"8,keyasint,omitempty"` // how often the state or words were written, including this write
	// Former is the roster that an operator can restore. This agent had it before it adopted a roster that
	// lacks several of Former's voters. Former is nil once this voter has accepted another roster. Refused
	// is the version from which an operator went back: the agent does not adopt it again.
	Former  *Roster `cbor:"10,keyasint,omitempty"`
	Refused Version `cbor:"11,keyasint,omitzero"`
	// KeepsWords reports whether any word is on disk: if so, a missing log of words means lost promises.
	KeepsWords bool          `cbor:"12,keyasint,omitempty"`
	Words      map[Name]Word `cbor:"-"` // kept in a separate log; set here only at a start
	Unsynced   bool          `cbor:"-"` // only at a start: a power cut may still lose words, until they have been written again
}

// Grant returns the grant on record in an election. If there is none, every term up to Forgotten
// counts as granted and released.
func (s *State) Grant(name Name) Grant {
	if g, onRecord := s.Grants[name]; onRecord {
		return g
	}
	return Grant{Term: s.Forgotten, Released: true}
}

// Clone returns a copy. The maps that may change later are not shared with the original.
func (s State) Clone() State {
	s.Grants = maps.Clone(s.Grants)
	s.Seen = maps.Clone(s.Seen)
	return s
}

// After returns what is on disk after the write.
func (s State) After(p *Persist) State {
	words := maps.Collect(maps.All(s.Words)) // a copy, and never nil
	if p.State != nil {
		s = *p.State
		if !s.KeepsWords {
			clear(words)
		}
	}
	for _, w := range p.Words {
		if words[w.Election] = w.Word; w.Word == (Word{}) {
			delete(words, w.Election)
		}
	}
	s.Words, s.Unsynced, s.Writes = words, false, max(s.Writes, p.Writes)
	return s
}

func (s State) Elections() []Name { return slices.Sorted(maps.Keys(s.Grants)) }
