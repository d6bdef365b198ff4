package codec

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// maxNesting is how deep arrays and maps may be nested. Messages need 5 levels,
// the rest is room for later fields.
const maxNesting = 10

// format is a way to write and read CBOR.
type format struct {
	enc cbor.EncMode
	dec cbor.DecMode
	err error // the options were refused
}

// newFormat returns a deterministic encoder and a strict decoder that refuses
// arrays and maps of more elements or pairs than given.
func newFormat(maxArray, maxMap int) format {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return format{err: fmt.Errorf("set up cbor encoder: %w", err)}
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8RejectInvalid,
		MaxNestedLevels:  maxNesting,
		MaxArrayElements: maxArray,
		MaxMapPairs:      maxMap,
	}.DecMode()
	if err != nil {
		return format{err: fmt.Errorf("set up cbor decoder: %w", err)}
	}
	return format{enc: enc, dec: dec}
}

func (f format) marshal(v any) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.enc.Marshal(v)
}

func (f format) unmarshal(data []byte, v any) error {
	if f.err != nil {
		return f.err
	}
	return f.dec.Unmarshal(data, v)
}
