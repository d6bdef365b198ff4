// Package codec turns messages and durable state into bytes and back, in
// deterministic CBOR (RFC 8949, section 4.2.1).
//
// It guarantees that equal values give equal bytes, that it can decode everything it encodes, and that any
// bytes decode to a valid value or a typed error. It checks sizes and nesting before it allocates memory. It
// refuses duplicate keys, tags, indefinite lengths and invalid values, such as a term of 0 or an unsorted
// roster. It ignores unknown fields, so that a later version can add fields. An unknown kind of message has its
// own type of error, so that the caller can count it.
//
// It does not guarantee that a message is true, fits the receiver's state, or comes from the agent that
// it names: the transport and the elector check that. The state's checksum detects damage, not forgery.
package codec
