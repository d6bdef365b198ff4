package codec

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// maxNesting bounds how deep arrays and maps may be nested. Messages need 5 levels; the rest is room for
// later fields.
const maxNesting = 10

// Format is a way to write and read CBOR.
type Format struct {
	enc cbor.EncMode
	dec cbor.DecMode
	err error // why the options were refused
}

// NewFormat returns a deterministic encoder and a strict decoder. The decoder refuses arrays of more than
// maxArray elements, and maps of more than maxMap pairs.
func NewFormat(maxArray, maxMap int) Format {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return Format{err: fmt.Errorf("set up cbor encoder: %w", err)}
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		UTF8: cbor.UTF8RejectInvalid, MaxNestedLevels: maxNesting, MaxArrayElements: maxArray, MaxMapPairs: maxMap,
	}.DecMode()
	if err != nil {
		return Format{err: fmt.Errorf("set up cbor decoder: %w", err)}
	}
	return Format{enc: enc, dec: dec}
}

// Marshal encodes a value.
func (f Format) Marshal(v any) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.enc.Marshal(v)
}

// Unmarshal decodes a value. It ignores unknown fields.
func (f Format) Unmarshal(data []byte, v any) error {
	if f.err != nil {
		return f.err
	}
	return f.dec.Unmarshal(data, v)
}
