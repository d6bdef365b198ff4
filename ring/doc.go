// Package ring selects who should lead by the ring algorithm of E. Chang and R. Roberts,
// "An Improved Algorithm for Decentralized Extrema-Finding in Circular Configurations of
// Processes", CACM 22(5), 1979. A token (Election) with the best candidate that it has met
// goes round all candidates, in the order of their peer IDs. The candidate whose own token
// comes back is the nominee. If the voters confirm it, it sends an announcement (Elected)
// round the ring.
//
// # Differences from the paper
//
//   - A nominee does not lead: it asks for votes, outside this package.
//   - So an Elected proves nothing and is not acknowledged: heartbeats show who leads.
//   - The paper's ring has no failures. Here each hop is acknowledged (Ack), and a
//     candidate that sends no Ack within the hop timeout is skipped.
//   - A candidate that replaces a worse token by its own starts its own round. So the
//     origin of a token is always the candidate that it carries, and a token whose origin
//     died is recognized.
//   - A candidate whose token does not come home in time sends another one.
//
// # Guarantees
//
// The field is the candidates that can lead, as one agent knows them (election.Field). If
// messages arrive within the hop timeout and all agents see the same field, exactly the best
// candidate becomes the nominee. Otherwise there may be two nominees, or none for a while:
// that costs time, never safety. Every wait ends, and no token or announcement circulates
// forever, even if its origin died.
//
// Whatever a peer sends, nothing panics, and memory is bounded by the field. Instants must
// not go backwards. A Ring is for one goroutine.
package ring
