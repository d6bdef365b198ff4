// Package election is the vocabulary of Doyen: identities, ranks and terms, the roster,
// the durable state, the messages between agents, and the inputs and outputs of an
// agent's step. docs/architecture.md, "Words", explains each word.
//
// All types are plain values, most with a total order. They hold no rules of a protocol,
// and nothing here checks a peer's message: internal/base/codec checks its form, and the package
// that acts on the message checks whether it makes sense.
//
// An Instant is nanoseconds of the local CLOCK_BOOTTIME, which counts suspend. Instants of
// two hosts are never compared.
package election
