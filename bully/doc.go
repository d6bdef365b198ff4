// Package bully selects who should lead by the Bully algorithm of H. Garcia-Molina, "Elections
// in a Distributed Computing System", IEEE Trans. Computers C-31(1), 1982. An agent that finds
// no leader asks all better-ranked candidates whether they are alive (Election). If one answers
// (Answer), the agent waits. If none answers in time, the agent is the nominee. When the voters
// have confirmed a nominee, it announces that to all candidates (Coordinator).
//
// # Differences from the paper
//
//   - A nominee does not lead yet: it asks for votes, outside this package. In the paper it
//     makes itself coordinator, so one late message can make two coordinators.
//   - So a Coordinator proves nothing. It only makes its receiver wait for a bounded time. Only the
//     elector, which knows the terms, ends a round because some agent leads.
//   - A candidate that is alive but can't lead now sends Decline, so that no agent waits for
//     it. If it becomes unable to lead after its Answer, it sends Decline then.
//   - Every wait ends at an instant known in advance. If there is no leader by then, the round starts again.
//   - A nominee also sends an Answer that was not asked for, with round 0, to worse candidates
//     that are not voters: these receive no Vote Request.
//
// # Guarantees
//
// The field has the candidates that can lead, as one agent knows them (election.Field). If
// messages arrive within the answer timeout and all agents see the same field, the best
// candidate becomes the only nominee. For n candidates, that takes about 2n messages if the best
// or second best starts, and n² if the worst does. If messages are late or fields differ, there
// may be two nominees, or none for some time: that costs time, never safety.
//
// No message of a peer makes a Bully panic, and the field bounds its memory. Instants must not go
// backwards. Only one goroutine may use a Bully.
package bully
