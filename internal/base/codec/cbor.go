package codec

import (
	"cmp"

	"github.com/fxamacker/cbor/v2"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// maxNesting bounds how deep arrays and maps may be nested. Messages need 5 levels; the rest is room for
// later fields.
const maxNesting = 10

// Format is a way to write and read CBOR.
type Format struct {
	enc cbor.EncMode
	dec cbor.DecMode
	err error // why the library refused the options
}

// NewFormat returns a deterministic encoder and a strict decoder. The decoder refuses arrays of more than
// maxArray elements, and maps of more than maxMap pairs.
func NewFormat(maxArray, maxMap int) Format {
	enc, encErr := cbor.CoreDetEncOptions().EncMode()
	dec, decErr := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		UTF8: cbor.UTF8RejectInvalid, MaxNestedLevels: maxNesting, MaxArrayElements: maxArray, MaxMapPairs: maxMap,
	}.DecMode()
	return Format{enc, dec, wrap.Error(cmp.Or(encErr, decErr), "set up cbor")}
}

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
