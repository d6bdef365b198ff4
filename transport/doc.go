// Package transport carries messages between agents over go-libp2p: one authenticated,
// encrypted, long-lived stream for each pair of peers (TCP, Noise, yamux).
//
// It guarantees that
//
//   - it talks to nobody but the peers last given to SetPeers, each under the identity
//     its key proves, and a peer counts as connected only after both sides accepted
//     each other's Hello;
//   - messages of one connection arrive in the order they were sent, except those that
//     package inbox lets go first, each at most once, none of them before its Connected
//     or after its Lost;
//   - Connected and Lost alternate for each peer and are never dropped, however slow
//     the consumer is: a pair it has not taken yet is skipped instead. Both sides of a
//     connection are notified of it, or, when it merely replaces one that broke a
//     moment ago, neither is;
//   - the death of a peer's process is reported within milliseconds (its kernel closes
//     the connections and refuses a redial), the break of a connection that can't heal
//     within 100 ms, and a link that works again is used again in under half a second
//     however long it was dark, given round trips well below the 300 ms a TCP connect
//     may take;
//   - nothing waits without a deadline, and nothing grows without bound: not by a slow
//     peer, a slow consumer, or anybody who connects to the port.
//
// It does not guarantee that a message arrives: a full queue, a broken connection and a
// slow consumer lose messages, which is counted and not reported otherwise. It does not
// notice silence: a peer that is stopped or cut off stays connected until the layer above
// calls Suspect, or until its kernel has not answered for a lease or more. It does not
// protect against an allowed peer that means harm beyond the bounds above.
//
// Of two peers, the one whose ID is lower dials, so that two never dial each other at
// once. The other one, when a connection breaks, checks by a bare TCP connect to the
// dialler's address whether anybody still listens there.
package transport
