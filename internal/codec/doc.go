// Package codec turns messages and durable state into bytes and back, in
// deterministic CBOR (RFC 8949, section 4.2.1).
//
// It guarantees that equal values give equal bytes, that whatever it encodes it
// can decode, and that decoding bytes from anywhere ends in a sensible value or
// in a typed error: sizes and nesting are bounded before memory is taken,
// duplicate keys, tags and indefinite lengths are refused, and so are values
// that make no sense by themselves (a term of 0, an unsorted roster, a lease of
// a year). Fields it does not know are ignored, so that a later version may add
// some; kinds of message it does not know are an error the caller can count.
//
// It does not guarantee that a message is true, fits the receiver's state, or
// comes from whom it names: that is for the transport and the elector to judge.
// The checksum of the state finds damage, not forgery.
package codec
