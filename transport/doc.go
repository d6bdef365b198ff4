// Package transport carries messages between agents over go-libp2p: one authenticated,
// encrypted, long-lived stream for each pair of peers (TCP, Noise, yamux).
//
// # The way of a message
//
// Send (transport.go) encodes it and gives it to the peer's session, whose write sends it
// (session.go). On the other side read decodes it, deliver (link.go) puts it into the
// inbox, and Next returns it to the agent's loop.
//
// # Guarantees
//
//   - Only the peers last given to SetPeers are connected, each by the identity that its
//     key proves, and only after both sides have accepted each other's Hello.
//   - The messages of one connection arrive at most once, after its Connected and before
//     its Lost, and in the order in which they were sent, except those that package inbox
//     lets overtake others.
//   - Connected and Lost alternate for each peer, and are never dropped. If a slow consumer
//     has not taken a pair of them yet, both are skipped. Both sides of a connection are
//     notified of it; if it only replaces one that has just broken, neither is.
//   - The death of a peer's process is reported within milliseconds (its kernel closes
//     the connections and refuses a redial), and a connection that breaks and does not heal
//     within 100 ms. A link that works again is used again in under half a second, however
//     long it was down, if round trips are well below the 300 ms that a TCP connect may
//     take.
//   - Nothing waits without a deadline, and nothing grows without bound, whether by a slow
//     peer, a slow consumer, or strangers that connect to the port.
//
// It does not guarantee that a message arrives: a full queue, a broken connection and a
// slow consumer lose messages, which is only counted. It does not detect silence: a peer
// that is stopped or cut off stays connected until the elector asks for a redial
// (Suspect), or until its kernel has not answered for a lease or more. An allowed peer that
// means harm can do what these bounds permit.
//
// Of two peers, the one with the lower ID dials, so that two never dial each other at
// once. When a connection breaks, the other one checks by a bare TCP connect to the
// dialler's address whether a process still listens there.
package transport
