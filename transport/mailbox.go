package transport

import (
	"net/netip"
	"sync"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
	"github.com/doyen-election/doyen/transport/inbox"
)

// Event is what a consumer gets from the transport: Connected, Lost, Message or Refused.
type Event interface{ event() }

type (
	// Connected means that messages to and from the peer may now arrive.
	Connected struct {
		Peer  election.PeerID
		Hello Hello
		Pass  *Pass // of a guest (see Admission); nil: SetPeers has named the peer
	}
	// Lost ends the connection that Connected reported.
	Lost struct {
		Peer election.PeerID
		Err  error // why; never nil
	}
	// Message is a message from a connected peer. Package codec has checked its values.
	Message struct {
		Peer    election.PeerID
		Message election.Message
	}
	// Refused means that a peer could be reached, but is not connected because one side refused. The
	// event comes again only when the cause changes.
	Refused struct {
		Peer   election.PeerID
		Name   string         // from its hello; empty without a hello
		Addr   netip.AddrPort // as far as it is known
		ByPeer bool           // the peer refused this agent; if false, this agent refused the peer
		Err    error          // the reason given by the side that refused
	}
)

func (Connected) event() {}
func (Lost) event()      {}
func (Message) event()   {}
func (Refused) event()   {}

// inboxRefusals bounds the refusals that wait to be taken.
const inboxRefusals = 64

// mailbox holds the events that the consumer has not taken. Any goroutine may put events; only one takes
// them.
//
// Invariant: of each peer at most inbox.PerPeer messages, two urgent messages and two events of Connected
// and Lost wait. So the number of peers bounds the mailbox.
type mailbox struct {
	mu       sync.Mutex
	waiting  inbox.Inbox
	refusals int
	ready    chan struct{} // of capacity 1; it has an element after a put
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put adds the event and returns whether it did. It never refuses Connected and Lost. If a Lost comes
// before its Connected was taken, put removes that Connected and everything that the peer sent since, and
// does not add the Lost.
func (b *mailbox) put(e Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case Message:
		if !b.waiting.Put(e.Peer, e.Message) {
			return false
		}
	case Refused:
		if b.refusals >= inboxRefusals {
			return false
		}
		b.refusals++
		b.waiting.Note("", e)
	case Lost:
		if b.waiting.Unsay(e.Peer, func(note any) bool { _, ok := note.(Connected); return ok }) {
			return true
		}
		b.waiting.Note(e.Peer, e)
	case Connected:
		b.waiting.Note(e.Peer, e)
	}
	offer.To(b.ready, struct{}{})
	return true
}

// take returns the event to be handled next, in the order of package inbox. If more events wait, it
// signals ready again.
func (b *mailbox) take() (Event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	item, ok := b.waiting.Take()
	if b.waiting.Waiting() > 0 {
		offer.To(b.ready, struct{}{})
	}
	switch {
	case !ok:
		return nil, false
	case item.Message != nil:
		return Message{Peer: item.Peer, Message: item.Message}, true
	}
	e := item.Note.(Event)
	if _, refused := e.(Refused); refused {
		b.refusals--
	}
	return e, true
}

// outdated returns how many messages were never taken because a newer one had made them worthless.
func (b *mailbox) outdated() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Outdated()
}
