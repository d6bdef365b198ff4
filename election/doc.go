// Package election is the vocabulary of Doyen: identities, ranks, terms, the
// durable state, and the messages, inputs and outputs of one agent's pure step.
//
// It guarantees only shapes: every type is a plain value with a total order
// where one is needed. It holds no protocol logic, reads no clock, and makes
// no promise that a value received from a peer is sensible: whoever consumes a
// message validates it.
//
// Time is an Instant of the local CLOCK_BOOTTIME, which counts suspend; two
// hosts' instants are never compared.
package election
