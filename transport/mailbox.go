package transport

import (
	"slices"
	"sync"

	"github.com/doyen-election/doyen/election"
)

const (
	// inboxPerPeer bounds the messages of one peer that wait for the consumer,
	// so that a talkative peer does not crowd out the others' heartbeats.
	inboxPerPeer = 256
	// inboxRefusals bounds the refusals that wait.
	inboxRefusals = 64
)

// mailbox holds the events the consumer has not taken. Any goroutine may put;
// one takes.
//
// Invariant: at most inboxPerPeer messages and two of Connected and Lost wait
// for each peer, so it is bounded by the number of peers.
type mailbox struct {
	mu       sync.Mutex
	queue    []Event
	messages map[election.PeerID]int
	refusals int
	ready    chan struct{} // of capacity 1: something was put
}

func newMailbox() *mailbox {
	return &mailbox{messages: map[election.PeerID]int{}, ready: make(chan struct{}, 1)}
}

// put adds the event and reports whether it did. Connected and Lost are never
// refused: a Lost whose Connected nobody has seen yet takes it out again,
// together with everything the peer said in between.
func (b *mailbox) put(e Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case Message:
		if b.messages[e.Peer] >= inboxPerPeer {
			return false
		}
		b.messages[e.Peer]++
	case Refused:
		if b.refusals >= inboxRefusals {
			return false
		}
		b.refusals++
	case Lost:
		if b.unsay(e.Peer) {
			return true
		}
	}
	b.queue = append(b.queue, e)
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return true
}

// unsay takes the peer's waiting Connected and its messages after it out of the
// queue, and reports whether there was one.
func (b *mailbox) unsay(p election.PeerID) bool {
	at := slices.IndexFunc(b.queue, func(e Event) bool {
		c, ok := e.(Connected)
		return ok && c.Peer == p
	})
	if at < 0 {
		return false
	}
	rest := slices.DeleteFunc(b.queue[at:], func(e Event) bool {
		switch e := e.(type) {
		case Connected:
			return e.Peer == p
		case Message:
			if e.Peer == p {
				b.forget(p)
				return true
			}
		}
		return false
	})
	b.queue = b.queue[:at+len(rest)]
	return true
}

func (b *mailbox) forget(p election.PeerID) {
	if b.messages[p]--; b.messages[p] == 0 {
		delete(b.messages, p)
	}
}

// take returns the oldest event.
func (b *mailbox) take() (Event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil, false
	}
	e := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	switch e := e.(type) {
	case Message:
		b.forget(e.Peer)
	case Refused:
		b.refusals--
	}
	return e, true
}
