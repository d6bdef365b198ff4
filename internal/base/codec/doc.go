// Package codec turns messages and durable state into bytes and back, in
// deterministic CBOR (RFC 8949, section 4.2.1).
//
// It guarantees that equal values give equal bytes, that it can decode whatever it
// encodes, and that any bytes decode to a valid value or a typed error. Sizes and
// nesting are bounded before memory is allocated. Duplicate keys, tags and indefinite
// lengths are refused, and so are invalid values (a term of 0, an unsorted roster, a
// lease of a year). Unknown fields are ignored, so that a later version may add fields. An
// unknown kind of message is an error that the caller can count.
//
// It does not guarantee that a message is true, fits the receiver's state, or comes from
// the agent that it names: the transport and the elector judge that. The checksum of the
// state finds damage, not forgery.
package codec
