// Package ring selects who should lead by the ring algorithm of E. Chang and R. Roberts,
// "An Improved Algorithm for Decentralized Extrema-Finding in Circular Configurations of
// Processes", CACM 22(5), 1979: a token (Election) that carries the best
// candidate it has met goes round all candidates, in the order of their peer IDs. The
// candidate whose own token comes back is the nominee. A nominee that the voters confirm
// sends an announcement (Elected) round the ring.
//
// # Differences from the paper
//
//   - A nominee does not lead: it asks for votes, outside this package.
//   - So an Elected proves nothing and is not acknowledged. Heartbeats show who leads,
//     also where it got lost.
//   - The paper's ring has no failures. Here each hop is acknowledged (Ack), and a
//     candidate that does not do so within the hop timeout is skipped.
//   - A candidate that replaces a worse token by its own starts a round of its own, so
//     that the origin of a token is always the candidate it carries, and a token whose
//     origin died is recognized.
//   - A candidate whose token does not come home in time sends another one.
//
// # Guarantees
//
// If messages arrive within the hop timeout and all agents see the same field, exactly the
// best candidate that can lead becomes the nominee. Every wait ends, with a new token if
// the last one got lost. No token and no announcement circulates for ever, even if its
// origin died. Whatever a peer sends, nothing panics, and memory is bounded by the field.
//
// If messages are lost or late, or the fields differ, there may be two nominees, or none
// for a while. That costs time, never safety.
//
// Instants must not go backwards. Messages may be lost, repeated and reordered. A Ring is
// not safe for concurrent use.
package ring
