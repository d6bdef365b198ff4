package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/doyen-election/doyen/election"
)

// MaxMessage bounds an encoded message, in bytes. Even a message with election.MaxElections claims or records
// is smaller.
const MaxMessage = 256 << 10

// messages is the format of messages. A struct becomes a map, and no message has more than 64 fields.
var messages = NewFormat(election.MaxElections, 64)

// envelope is a message on the wire: an array with its kind and its fields.
type envelope struct {
	_    struct{} `cbor:",toarray"`
	Kind uint64
	Body cbor.RawMessage
}

// UnknownKindError reports a kind of message that this version does not know.
type UnknownKindError struct{ Kind uint64 }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("message of unknown kind %d (from a newer version?)", e.Kind)
}

// InvalidError reports bytes that are not a message: they are too many or not CBOR, lack the fields of their
// kind, or have a value that a correct agent never sends.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return "invalid message: " + e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

// EncodeMessage encodes a message in at most MaxMessage bytes. It refuses every message that DecodeMessage
// would refuse. The error is an *InvalidError if a correct agent never sends such a message.
func EncodeMessage(m election.Message) ([]byte, error) {
	k, ok := byType[reflect.TypeOf(m)]
	if !ok {
		return nil, fmt.Errorf("encode message: %T is not a message of package election", m)
	}
	if err := k.check(m); err != nil {
		return nil, fmt.Errorf("encode: %w", &InvalidError{Err: fmt.Errorf("%s: %w", k.name, err)})
	}
	body, err := messages.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %s: %w", k.name, err)
	}
	data, err := messages.Marshal(envelope{Kind: k.number, Body: body})
	if err != nil {
		return nil, fmt.Errorf("encode message: %s: %w", k.name, err)
	}
	if len(data) > MaxMessage {
		return nil, fmt.Errorf("encode message: %s of %d bytes is over the limit of %d", k.name, len(data), MaxMessage)
	}
	return data, nil
}

// DecodeMessage decodes a message. An error is an *UnknownKindError or an *InvalidError. The result does
// not refer to data.
func DecodeMessage(data []byte) (election.Message, error) {
	if len(data) > MaxMessage {
		return nil, &InvalidError{Err: fmt.Errorf("%d bytes are over the limit of %d", len(data), MaxMessage)}
	}
	var e envelope
	if err := messages.Unmarshal(data, &e); err != nil {
		return nil, &InvalidError{Err: err}
	}
	k, ok := byNumber[e.Kind]
	if !ok {
		return nil, &UnknownKindError{Kind: e.Kind}
	}
	if !isMap(e.Body) {
		return nil, &InvalidError{Err: errors.New(k.name + ": its fields are not a map")}
	}
	m, err := k.decode(e.Body)
	if err != nil {
		return nil, &InvalidError{Err: fmt.Errorf("%s: %w", k.name, err)}
	}
	if err := k.check(m); err != nil {
		return nil, &InvalidError{Err: fmt.Errorf("%s: %w", k.name, err)}
	}
	return m, nil
}

// isMap reports whether the CBOR item is a map (RFC 8949, section 3.1). Without this check, a null would
// decode to a message with all fields zero.
func isMap(item []byte) bool { return len(item) > 0 && item[0]>>5 == 5 }
