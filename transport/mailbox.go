package transport

import (
	"sync"

	"github.com/doyen-election/doyen/transport/inbox"
)

// inboxRefusals bounds the refusals that wait.
const inboxRefusals = 64

// mailbox holds the events that the consumer has not taken. Any goroutine may put; one
// takes.
//
// Invariant: of each peer at most inbox.PerPeer messages, two urgent ones and two events
// of Connected and Lost wait. So the number of peers bounds the mailbox.
type mailbox struct {
	mu       sync.Mutex
	waiting  inbox.Inbox
	refusals int
	ready    chan struct{} // of capacity 1: something was put
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put adds the event and returns whether it did. Connected and Lost are never refused. If
// nobody has taken the Connected before a Lost, put removes that Connected and everything
// that the peer sent since, and does not add the Lost.
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

// wake tells the consumer that something waits.
func (b *mailbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns the event to be handled next, in the order of package inbox. While more
// waits, ready stays set.
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

// outdated counts the messages that a newer one made worthless before they were taken.
func (b *mailbox) outdated() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Outdated()
}
