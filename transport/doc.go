// Package transport carries messages between agents over go-libp2p: one authenticated,
// encrypted, long-lived stream for each pair of peers (TCP, Noise, yamux).
//
// # The way of a message
//
// Send (transport.go) encodes it and gives it to the peer's session, whose method write sends
// it (session.go). On the other side the method read decodes it, deliver (link.go) puts it
// into the inbox, and Next returns it to the agent's loop.
//
// # Guarantees
//
//   - Only the peers last given to SetPeers are connected, each by the identity that its
//     key proves, and only after both sides have accepted each other's Hello.
//   - The messages of one connection arrive at most once, after its Connected and before
//     its Lost, and in the order in which they were sent, except those that package inbox
//     lets overtake others.
//   - Connected and Lost alternate for each peer, and are never dropped alone. If a slow
//     consumer has taken neither of a pair yet, both are skipped. Both sides of a connection
//     report it. If it only replaces one that has just broken, neither side does.
//   - The death of a peer's process is reported within milliseconds: its kernel closes the
//     connections and refuses a redial. A broken connection is reported if it is not
//     replaced within 100 ms. A link that works again is used again in under half a second,
//     however long it was down, if round trips are well below the 300 ms that a TCP connect
//     may take.
//   - Nothing waits without a deadline, and nothing grows without bound, whether by a slow
//     peer, a slow consumer, or strangers that connect to the port.
//
// It does not guarantee that a message arrives: a full queue, a broken connection and a
// slow consumer lose messages. Lost messages are only counted. It does not detect silence:
// a peer that is stopped or cut off stays connected until the elector asks for a redial
// (Suspect), or until the peer's kernel has not answered for a lease or more. An allowed
// peer that means harm can do what these bounds permit.
//
// Of two peers, the one with the lower ID dials, so that two never dial each other at
// once. When a connection breaks, the peer that does not dial makes a bare TCP connection
// to the dialler's address, to see whether a process still listens there.
package transport
