package transport

import (
	"net/netip"

	"github.com/doyen-election/doyen/election"
)

// Event is what a consumer gets from the transport: Connected, Lost, Message or Refused.
type Event interface{ event() }

type (
	// Connected: messages to and from the peer may now arrive.
	Connected struct {
		Peer  election.PeerID
		Hello Hello
	}
	// Lost ends what Connected began.
	Lost struct {
		Peer election.PeerID
		Err  error // why; never nil
	}
	// Message is a message from a connected peer. Package codec has found its values
	// valid.
	Message struct {
		Peer    election.PeerID
		Message election.Message
	}
	// Refused: a peer could be reached, and is not connected because one side refused. The
	// event comes again only when the cause changes.
	Refused struct {
		Peer   election.PeerID
		Name   string         // as in its hello; empty without one
		Addr   netip.AddrPort // as far as known
		ByPeer bool           // the peer refused this agent; else this agent refused the peer
		Err    error          // the refuser's reason
	}
)

func (Connected) event() {}
func (Lost) event()      {}
func (Message) event()   {}
func (Refused) event()   {}
