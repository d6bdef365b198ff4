package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// Format is the version of the file's content. A life that knows only another version begins a new lineage.
const Format = 2

const (
	magic    = "doyenrec"
	headSize = len(magic) + 4 // bytes at the start of the file: magic and format
	entryLen = 12             // bytes before each item: its length, its checksum, and the checksum of these two
	maxSize  = 64 << 20       // bytes that are read of a file
)

// item is what one step has changed. The first item of a file holds the whole state.
type item struct {
	Header *header                  `cbor:"1,keyasint,omitempty"`
	Life   *life                    `cbor:"2,keyasint,omitempty"`
	Terms  *terms                   `cbor:"3,keyasint,omitempty"`
	Voters *[]Voter                 `cbor:"4,keyasint,omitempty"`
	Rows   []election.Authority     `cbor:"5,keyasint,omitempty"` // a row without a highest term removes the election's row
	Actors map[election.Name]Actors `cbor:"7,keyasint,omitempty"`
}

// header names the file, and what never changes in a lineage.
type header struct {
	Lineage  election.LineageID `cbor:"1,keyasint"`
	JoinedAt int64              `cbor:"2,keyasint"`
	Peer     election.PeerID    `cbor:"3,keyasint"`
	Boot     leasepage.HostBoot `cbor:"4,keyasint"`
	TimeNS   uint64             `cbor:"5,keyasint"` // inode of /proc/self/ns/time; 0: the kernel has no time namespaces
	Device   uint64             `cbor:"6,keyasint"` // the device of the record's file, which is also the lock
	Inode    uint64             `cbor:"7,keyasint"`
	Offsets  string             `cbor:"8,keyasint,omitempty"` // how far this time namespace's clocks differ from the host's; the inode is not enough, since the kernel uses it again
}

type life struct {
	Number uint64        `cbor:"1,keyasint"`
	Lease  time.Duration `cbor:"2,keyasint"` // the shortest lease that any life of the lineage had
	Ahead  int64         `cbor:"3,keyasint"` // what boottime.Ahead returned, see boottime.SuspendedSince
}

// terms are the terms of forgotten elections.
type terms struct {
	Retired election.Term `cbor:"1,keyasint"`
	Spent   election.Term `cbor:"2,keyasint"`
}

// Voter holds the addresses of one voter.
type Voter struct {
	Peer   election.PeerID `cbor:"1,keyasint"`
	Gossip netip.AddrPort  `cbor:"2,keyasint"`
	Stream netip.AddrPort  `cbor:"3,keyasint"`
}

// state is the outcome of all items of a log.
type state struct {
	header header
	life   life
	terms  terms
	voters []Voter
	rows   map[election.Name]election.Authority
	actors map[election.Name]Actors // only of elections that have a row
}

func newState() state {
	return state{rows: map[election.Name]election.Authority{}, actors: map[election.Name]Actors{}}
}

// apply applies an item to the state. It returns false if the item does not fit.
func (s *state) apply(it *item) bool {
	replace(&s.header, it.Header)
	replace(&s.life, it.Life)
	replace(&s.terms, it.Terms)
	replace(&s.voters, it.Voters)
	for _, a := range it.Rows {
		if s.rows[a.Election] = a; a.Highest == 0 {
			delete(s.rows, a.Election)
			delete(s.actors, a.Election)
		}
	}
	for name, a := range it.Actors {
		if _, known := s.rows[name]; !known {
			return false
		}
		s.actors[name] = a
	}
	return true
}

func replace[T any](it, by *T) {
	if by != nil {
		*it = *by
	}
}

// whole returns the item that holds the whole state, its rows sorted by election.
func (s *state) whole() *item {
	rows := slices.SortedFunc(maps.Values(s.rows), func(a, b election.Authority) int { return cmp.Compare(a.Election, b.Election) })
	return &item{Header: &s.header, Life: &s.life, Terms: &s.terms, Voters: &s.voters, Rows: rows, Actors: s.actors}
}

func (s *state) past() *Past {
	past := &Past{Actors: maps.Clone(s.actors), Voters: slices.Clone(s.voters)}
	past.Lineage = s.lineage()
	past.Retired, past.Spent, past.Rows = s.terms.Retired, s.terms.Spent, s.whole().Rows
	return past
}

func (s *state) lineage() election.Lineage {
	return election.Lineage{ID: s.header.Lineage, Life: s.life.Number, JoinedAt: s.header.JoinedAt, Lease: s.life.Lease}
}

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// seal fills in the length and the checksums in the first entryLen bytes of the entry.
func seal(entry []byte) {
	body := entry[entryLen:]
	binary.LittleEndian.PutUint32(entry, uint32(len(body)))
	binary.LittleEndian.PutUint32(entry[4:], sum(body))
	binary.LittleEndian.PutUint32(entry[8:], sum(entry[:8]))
}

// replay returns the state that a file holds, and where its last complete item ends. What follows is
// an item that a life was writing when it died: nobody has seen anything of that step. Any other damage is
// an error, since nobody knows what is missing (K7).
func replay(file []byte) (s state, end int, err error) {
	s = newState()
	switch {
	case len(file) == 0:
		return s, 0, errDestroyed
	case len(file) < headSize || string(file[:len(magic)]) != magic:
		return s, 0, errNoRecord
	case binary.LittleEndian.Uint32(file[len(magic):]) != Format:
		return s, 0, fmt.Errorf("its format is %d, and this agent has %d", binary.LittleEndian.Uint32(file[len(magic):]), Format)
	}
	for end = headSize; len(file)-end >= entryLen; {
		entry := file[end:]
		if sum(entry[:8]) != binary.LittleEndian.Uint32(entry[8:]) {
			return s, end, errDamaged
		}
		n := int64(binary.LittleEndian.Uint32(entry))
		if n > int64(len(entry)-entryLen) {
			break
		}
		body := entry[entryLen:][:n]
		var it item
		if sum(body) != binary.LittleEndian.Uint32(entry[4:]) || cbor.Unmarshal(body, &it) != nil || !s.apply(&it) {
			return s, end, errDamaged
		}
		end += entryLen + len(body)
	}
	if s.header.Lineage == 0 || s.life.Number == 0 { // a file gets its name only with a complete first item
		return s, end, errDamaged
	}
	return s, end, nil
}
