// Package bully selects who should lead by the Bully algorithm of H. Garcia-Molina,
// "Elections in a Distributed Computing System", IEEE Trans. Computers C-31(1), 1982: an agent that misses the leader asks all better-ranked
// candidates whether one of them is alive (Election), and waits if one answers
// (Answer). If none does in time, it is the nominee. A nominee that the voters confirm
// tells all candidates (Coordinator).
//
// # Differences from the paper
//
//   - A nominee does not lead: it asks for votes, outside this package. In the paper it
//     makes itself coordinator, so one late message makes two.
//   - So a Coordinator proves nothing. It makes its receiver wait for a bounded time;
//     only the elector, which knows terms, ends a round for it.
//   - A candidate that is alive and can't lead now sends Decline, so that nobody waits
//     for it. One that answered sends it later, if it becomes unable.
//   - Every wait ends at an instant known in advance, and the round starts again then.
//   - A nominee sends Answer unasked, with round 0, to worse candidates that do not
//     vote: they would not hear of its bid.
//
// # Guarantees
//
// If messages arrive within the answer timeout and all agents see the same field, exactly
// the best candidate that can lead becomes the nominee. It takes 2n messages for n
// candidates if the best or second best starts, and n² if the worst does. A round asks a
// better candidate once each time that it enters the field. Whatever a peer sends, nothing
// panics, and memory is bounded by the field.
//
// If messages are lost or late, or the fields differ, there may be two nominees, or none
// for a while. That costs time, never safety.
//
// Instants must not go backwards. Messages may be lost, repeated and reordered. A Bully
// is not safe for concurrent use.
package bully
