package transport

import "sync/atomic"

// Stats counts what has happened since the start. The counters only rise.
type Stats struct {
	BytesIn, BytesOut  uint64            // of the messages' frames, before encryption
	Dropped            map[string]uint64 // messages, by the reason for dropping them
	Dials, DialsFailed uint64            // attempts to connect, which include the hellos
	Refusals           map[string]uint64 // connections not accepted, by the reason
}

// Why a message is dropped.
const (
	dropUnknownPeer  = iota // Send to a peer that was not given to SetPeers
	dropNotConnected        // Send while there is no connection
	dropEncode              // Send of a message that a correct agent never sends
	dropQueueFull           // Send while the peer's queue is full
	dropUnknownKind         // received a kind that only a newer version knows
	dropInvalid             // received bytes that are not a message of a correct agent
	dropInboxFull           // received while the inbox is full
	dropOutdated            // a newer message made it worthless before it was sent or taken
	dropLevel               // Send to a peer whose version does not know the message
	drops
)

// Why a connection is not accepted.
const (
	refusePending     = iota // too many connections have not proven an identity yet
	refuseUnknownPeer        // the peer was not given to SetPeers
	refuseDirection          // the peer dialled, although this agent is the one that has to dial
	refuseHello              // this agent did not accept the hello
	refusedByPeer            // the peer did not accept this agent's hello
	refusals
)

// counters are the running counts from which Stats is made.
type counters struct {
	bytesIn, bytesOut  atomic.Uint64
	dropped            [drops]atomic.Uint64
	dials, dialsFailed atomic.Uint64
	refused            [refusals]atomic.Uint64
}

func (c *counters) stats() Stats {
	dropNames := dropNames()
	refusalNames := [refusals]string{"pending_limit", "unknown_peer", "wrong_direction", "hello", "by_peer"}
	s := Stats{
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), Dials: c.dials.Load(), DialsFailed: c.dialsFailed.Load(),
		Dropped: make(map[string]uint64, drops), Refusals: make(map[string]uint64, refusals),
	}
	for i := range c.dropped {
		s.Dropped[dropNames[i]] = c.dropped[i].Load()
	}
	for i := range c.refused {
		s.Refusals[refusalNames[i]] = c.refused[i].Load()
	}
	return s
}

// dropNames returns the keys of Stats.Dropped.
func dropNames() [drops]string {
	return [drops]string{
		"unknown_peer", "not_connected", "encode", "queue_full", "unknown_kind", "invalid", "inbox_full", "outdated", "older_version",
	}
}
