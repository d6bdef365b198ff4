package agent

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// What the loop needs of the other parts, so that a test can replace them.
type (
	// core decides. One goroutine owns it.
	core interface {
		Step(election.Instant, election.Input) election.Output
		Status(election.Instant) *elector.Status
		HandingOver() bool
	}
	// network carries messages to peers; none of its methods blocks.
	network interface {
		Send(election.PeerID, election.Message) bool
		SetPeers([]transport.Peer)
		Suspect(election.PeerID)
		Unsendable() string
		Ready() <-chan struct{}
		Next() (transport.Event, bool)
	}
	// gossip knows the members.
	gossip interface {
		Views() <-chan membership.View
		Update(func(*membership.Member)) error
	}
	// disk makes a state durable, and blocks while it does.
	disk interface {
		Write(election.State) error
	}
)
