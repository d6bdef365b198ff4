package transport

import (
	"sync"

	"github.com/doyen-election/doyen/transport/inbox"
)

// inboxRefusals bounds the refusals that wait.
const inboxRefusals = 64

// mailbox holds the events the consumer has not taken. Any goroutine may put;
// one takes.
//
// Invariant: at most inbox.PerPeer messages, two urgent ones and two of Connected
// and Lost wait for each peer, so it is bounded by the number of peers.
type mailbox struct {
	mu       sync.Mutex
	waiting  inbox.Inbox
	refusals int
	ready    chan struct{} // of capacity 1: something was put
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put adds the event and returns whether it did. Connected and Lost are never refused: a
// Lost whose Connected nobody has taken yet removes it, together with everything that
// the peer sent in between.
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
	b.wake()
	return true
}

// wake has the consumer look.
func (b *mailbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns the event to be handled next: a heartbeat or an answer to one,
// else the oldest. While more waits, ready stays set.
func (b *mailbox) take() (Event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	item, ok := b.waiting.Take()
	if b.waiting.Waiting() > 0 {
		b.wake()
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

// outdated is how many messages a newer one made worthless before they were taken.
func (b *mailbox) outdated() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Outdated()
}
