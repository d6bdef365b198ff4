// Package bully selects who should lead by the Bully algorithm of H.
// Garcia-Molina, "Elections in a Distributed Computing System", IEEE Trans.
// Computers C-31(1), 1982: whoever misses the leader asks all better-ranked
// candidates whether one of them is alive, and stands back if one answers.
//
// It guarantees, when messages arrive within the answer timeout and all agents
// see the same field, that exactly the best candidate able to lead becomes the
// nominee; that every wait ends; that a round asks a better candidate once
// each time it enters the field; and that whatever a peer sends, nothing panics
// and memory stays within a small multiple of the field.
//
// It does not guarantee one nominee, nor any, when messages are lost, late or
// the fields differ: that costs time and never safety, because a nominee is
// not yet a leader. Who leads is decided by votes, outside this package. In
// particular a Coordinator message proves nothing here: it makes an agent wait
// a bounded time, and only the elector, which knows terms, ends a round for it.
//
// It assumes of time only that the instants it is given do not go backwards,
// and of the network nothing: messages may be lost, repeated and reordered.
package bully
