package codec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// The state file is a header of fixed layout and a body of CBOR:
//
//	magic     12 bytes  "doyen-state\n"
//	format     4 bytes  big endian, StateFormat
//	length     8 bytes  big endian, of the body
//	checksum  32 bytes  SHA-256 of format, length and body
//	body
//
// Every format has this same header, so that an older program can distinguish a newer file from a damaged
// one.
const (
	magic         = "doyen-state\n"
	formatAt      = len(magic)
	lengthAt      = formatAt + 4
	checksumAt    = lengthAt + 8
	bodyAt        = checksumAt + sha256.Size
	maxStateItems = 1 << 16 // the most elections in the state
)

// StateFormat is the newest format that this version reads. It writes format 3 only if there are words, and
// format 2 only if a roster has something for which format 1 has no fields. So an older version can start if it
// knows every field in the state; otherwise it refuses to start.
const StateFormat uint32 = 3

func formatOf(s *election.State) uint32 {
	if s.KeepsWords {
		return 3
	}
	if s.Roster.Level() > 0 || s.Former.Level() > 0 || s.Pending != nil && s.Pending.Roster.Level() > 0 {
		return 2
	}
	return 1
}

// MaxState bounds an encoded state, in bytes.
const MaxState = 32 << 20

var states = NewFormat(maxStateItems, maxStateItems)

// ForeignStateError reports bytes that never were a state of Doyen.
type ForeignStateError struct{}

func (*ForeignStateError) Error() string {
	return "is not a Doyen state file (a different file is in its place)"
}

// NewerStateError reports that a newer version of Doyen wrote the state.
type NewerStateError struct{ Format uint32 }

func (e *NewerStateError) Error() string {
	return fmt.Sprintf("state file has format %d, this version reads up to %d: run a newer doyen", e.Format, StateFormat)
}

// DamagedStateError reports that the state differs from what was written. Promises may be lost, so the
// state must not be used, and must not be replaced by an empty one.
type DamagedStateError struct{ Why string }

func (e *DamagedStateError) Error() string { return "state file is damaged: " + e.Why }

// EncodeState encodes the state as the content of a file, with a checksum. It refuses every state that
// DecodeState would refuse.
func EncodeState(s election.State) ([]byte, error) {
	if err := checkState(s); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	body, err := states.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if len(body) > MaxState-bodyAt {
		return nil, fmt.Errorf("encode state: %d bytes are over the limit of %d", bodyAt+len(body), MaxState)
	}
	return seal(formatOf(&s), body), nil
}

// seal puts the header in front of the body.
func seal(format uint32, body []byte) []byte {
	data := make([]byte, bodyAt, bodyAt+len(body))
	copy(data, magic)
	binary.BigEndian.PutUint32(data[formatAt:], format)
	binary.BigEndian.PutUint64(data[lengthAt:], uint64(len(body)))
	data = append(data, body...)
	sum := checksum(data)
	copy(data[checksumAt:], sum[:])
	return data
}

// checksum covers everything except itself and the magic. unseal compares the magic itself.
func checksum(data []byte) [sha256.Size]byte {
	return sha256.Sum256(append(append([]byte(nil), data[formatAt:checksumAt]...), data[bodyAt:]...))
}

// DecodeState returns the state that was given to EncodeState. An error is a *ForeignStateError,
// *NewerStateError or *DamagedStateError.
func DecodeState(data []byte) (election.State, error) {
	body, err := unseal(data)
	if err != nil {
		return election.State{}, err
	}
	var s election.State
	if err := states.Unmarshal(body, &s); err != nil {
		return election.State{}, &DamagedStateError{Why: err.Error()}
	}
	if err := checkState(s); err != nil {
		return election.State{}, &DamagedStateError{Why: err.Error()}
	}
	for name, g := range s.Grants { // no agent has used a longer lease than MaxLease, and the longest lease in the state decides how long a hold lasts
		g.Lease = min(g.Lease, election.MaxLease)
		s.Grants[name] = g
	}
	return s, nil
}

// unseal checks the header and returns the body.
func unseal(data []byte) ([]byte, error) {
	switch {
	case !bytes.HasPrefix(data, []byte(magic)) && !bytes.HasPrefix([]byte(magic), data): // a file that is a beginning of the magic was a state
		return nil, &ForeignStateError{}
	case len(data) < bodyAt:
		return nil, &DamagedStateError{Why: fmt.Sprintf("it was cut short, to %d bytes", len(data))}
	case len(data) > MaxState:
		return nil, &DamagedStateError{Why: fmt.Sprintf("%d bytes are over the limit of %d", len(data), MaxState)}
	}
	want := binary.BigEndian.Uint64(data[lengthAt:])
	if have := uint64(len(data) - bodyAt); have < want {
		return nil, &DamagedStateError{Why: fmt.Sprintf("it was cut short, by %d of %d bytes", want-have, want)}
	} else if have > want {
		return nil, &DamagedStateError{Why: fmt.Sprintf("%d bytes follow its end", have-want)}
	}
	if sum := checksum(data); !bytes.Equal(sum[:], data[checksumAt:bodyAt]) {
		return nil, &DamagedStateError{Why: "its checksum does not match"}
	}
	switch format := binary.BigEndian.Uint32(data[formatAt:]); {
	case format > StateFormat:
		return nil, &NewerStateError{Format: format}
	case format == 0:
		return nil, &DamagedStateError{Why: fmt.Sprintf("format %d never existed", format)}
	}
	return data[bodyAt:], nil
}

func checkState(s election.State) error {
	if err := cmp.Or(peer("peer", s.Peer), roster(s.Roster), wrap.Error(roster(s.Former), "former"), wrap.Error(genesis(s.Pending), "pending"), maybeTerm("forgotten", s.Forgotten)); err != nil {
		return err
	}
	if n := max(len(s.Grants), len(s.Seen)); n > maxStateItems {
		return fmt.Errorf("%d elections are over the limit of %d", n, maxStateItems)
	}
	for _, name := range s.Elections() {
		if err := cmp.Or(electionName(name), grant(s.Grants[name])); err != nil {
			return fmt.Errorf("grant: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Seen)) {
		if err := cmp.Or(electionName(name), term("term", s.Seen[name])); err != nil {
			return fmt.Errorf("seen: %w", err)
		}
	}
	return nil
}

// grant accepts a grant without holder and lease: a term that came with a roster has neither.
func grant(g election.Grant) error {
	return cmp.Or(term("term", g.Term), maybe("holder", g.Holder, holder), maybeDuration("lease", g.Lease))
}
