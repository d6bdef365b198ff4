// Package codec turns messages and durable state into bytes and back, in
// deterministic CBOR (RFC 8949, section 4.2.1).
//
// It guarantees that equal values give equal bytes, that it can decode everything it encodes, and that
// any bytes decode to a valid value or a typed error. Sizes and nesting are checked before memory is
// allocated. Duplicate keys, tags, indefinite lengths and invalid values are refused (a term of 0, an
// unsorted roster, a lease of a year). Unknown fields are ignored, so that a later version can add
// fields. For an unknown kind of message, the error has a separate type, so that the caller can count it.
//
// It does not guarantee that a message is true, fits the receiver's state, or comes from the agent that
// it names: the transport and the elector check that. The state's checksum detects damage, not forgery.
package codec
