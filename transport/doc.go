// Package transport carries messages between agents over go-libp2p: one authenticated,
// encrypted, long-lived stream for each pair of peers (TCP, Noise, yamux).
//
// # The way of a message
//
// Send (transport.go) encodes a message and gives it to the peer's session. The session's method write
// sends it (session.go). On the other side, read decodes the message, deliver (link.go) puts it into the
// inbox, and Next returns it to the agent's loop.
//
// # Guarantees
//
//   - Only the peers last given to SetPeers are connected, and guests: agents that Admission lets in by what
//     their hello brings. Each proves its identity with its key, and both sides must accept each other's
//     Hello. Any other agent learns nothing of this one.
//   - The messages of one connection arrive at most once, between its Connected and its Lost.
//     They arrive in the order in which they were sent, except those that package inbox lets
//     overtake others.
//   - Connected and Lost alternate for each peer. Neither is dropped alone: if a slow consumer
//     has taken neither event of a pair yet, both are dropped. Both sides of a connection report it;
//     neither does if the connection only replaces one that has just broken.
//   - The death of a peer's process is reported within milliseconds: its kernel closes the
//     connections and refuses a redial. A broken connection is reported if it is not replaced
//     within 100 ms. A link that heals is used again in under half a second, however long it
//     was down, if round trips are well below the 300 ms that a TCP connect may take.
//   - Nothing waits without a deadline, and nothing grows without bound, whether by a slow
//     peer, a slow consumer, or strangers that connect to the port.
//
// It does not guarantee that a message arrives: a full queue, a broken connection and a slow consumer lose
// messages. Lost messages are only counted. It does not detect silence: a peer that is stopped or cut off
// stays connected until the elector asks for a redial (Suspect), or until the peer's kernel has not
// acknowledged anything for a lease or more. An allowed peer with bad intentions can do all that these
// bounds permit.
//
// Of two peers, the one with the lower ID dials, so that two never dial each other at
// once. When a connection breaks, the peer that does not dial makes a bare TCP connection
// to the dialler's address, to see whether a process still listens there.
package transport
