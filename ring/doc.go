// Package ring selects who should lead by the ring algorithm of E. Chang and R. Roberts, "An
// Improved Algorithm for Decentralized Extrema-Finding in Circular Configurations of Processes",
// CACM 22(5), 1979. A token (Election) goes round all candidates, in the order of their peer
// IDs. It names the best candidate that it has met. A candidate whose own token comes back is
// the nominee. When the voters have confirmed the nominee, it sends an announcement (Elected)
// round the ring.
//
// # Differences from the paper
//
//   - A nominee does not lead yet: it asks for votes, outside this package.
//   - So an Elected proves nothing and is not acknowledged: heartbeats show who leads.
//   - The paper's ring has no failures. Here each hop is acknowledged (Ack), and a
//     candidate that sends no Ack within the hop timeout is skipped.
//   - A candidate that receives a worse token sends its own token instead. So the origin of a
//     token is always the candidate that it names, and a token of a dead origin is recognized.
//   - A candidate whose token does not come back in time sends another one.
//
// # Guarantees
//
// The field has the candidates that can lead, as one agent knows them (election.Field). If
// messages arrive within the hop timeout and all agents see the same field, the best candidate
// becomes the only nominee. Otherwise there may be two nominees, or none for some time: that
// costs time, never safety. Every wait ends. No token or announcement circulates forever, even
// if its origin has died.
//
// No message of a peer makes a Ring panic, and the field bounds its memory. Instants must not go
// backwards. Only one goroutine may use a Ring.
package ring
