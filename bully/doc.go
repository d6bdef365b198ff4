// Package bully selects who should lead by the Bully algorithm of H. Garcia-Molina,
// "Elections in a Distributed Computing System", IEEE Trans. Computers C-31(1), 1982. An
// agent that finds no leader asks all better-ranked candidates whether one of them is
// alive (Election), and waits if one answers (Answer). If none does in time, it is the
// nominee. A nominee that the voters confirm tells all candidates (Coordinator).
//
// # Differences from the paper
//
//   - A nominee does not lead: it asks for votes, outside this package. In the paper it
//     makes itself coordinator, so one late message can make two coordinators.
//   - So a Coordinator proves nothing. It makes its receiver wait for a bounded time. Only
//     the elector, which knows terms, ends a round because somebody leads.
//   - A candidate that is alive and can't lead now sends Decline, so that nobody waits
//     for it. If it becomes unable after its Answer, it sends Decline then.
//   - Every wait ends at an instant known in advance, and the round starts again then.
//   - A nominee sends Answer unasked, with round 0, to worse candidates that do not
//     vote: these receive no Vote Request.
//
// # Guarantees
//
// The field is the candidates that can lead, as one agent knows them (election.Field). If
// messages arrive within the answer timeout and all agents see the same field, exactly the
// best candidate becomes the nominee. It takes 2n messages for n candidates if the best or
// second best starts, and n² if the worst does. Otherwise there may be two nominees, or
// none for a while: that costs time, never safety.
//
// Whatever a peer sends, nothing panics, and memory is bounded by the field. Instants must
// not go backwards. A Bully is for one goroutine.
package bully
