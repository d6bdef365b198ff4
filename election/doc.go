// Package election is the vocabulary of Doyen: identities, ranks and terms, the roster,
// the durable state, the messages between agents, and the inputs and outputs of an
// agent's step. docs/architecture.md, "Words", explains each word.
//
// All types are plain values, most with a total order. They hold no rules of a protocol, and
// this package does not check the messages of a peer: internal/base/codec checks their form, and
// the package that acts on a message checks whether its content makes sense.
//
// An Instant is nanoseconds of the local CLOCK_BOOTTIME, which also counts the time that the host was
// suspended. Instants of two hosts are never compared.
package election
