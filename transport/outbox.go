package transport

import (
	"sync"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
)

const (
	// queueLength and queueBytes bound what waits to be written to one peer.
	queueLength = 256
	queueBytes  = 4 << 20
)

// outbox holds the encoded messages that wait to be written to one peer. The newest heartbeat, and the
// newest answer to a heartbeat, replace older ones and are taken first, so that a leader keeps its leases
// however much else there is to send.
type outbox struct {
	mu     sync.Mutex
	urgent [2][]byte
	queue  [][]byte
	bytes  int           // in queue
	ready  chan struct{} // of capacity 1; it has an element after a put
}

// slotOf returns the index in urgent of a message's kind, -1 if the kind is not urgent.
func slotOf(m election.Message) int {
	switch m.(type) {
	case election.Heartbeat:
		return 0
	case election.HeartbeatAck:
		return 1
	}
	return -1
}

// put adds a message, whose encoded form is body. It reports whether there was room, and whether the
// message replaced an older one.
func (o *outbox) put(m election.Message, body []byte) (ok, replaced bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch slot := slotOf(m); {
	case slot >= 0:
		replaced = o.urgent[slot] != nil
		o.urgent[slot] = body
	case len(o.queue) >= queueLength || o.bytes+len(body) > queueBytes:
		return false, false
	default:
		o.queue = append(o.queue, body)
		o.bytes += len(body)
	}
	offer.To(o.ready, struct{}{})
	return true, replaced
}

// take removes and returns what is to be written next, or nil if nothing waits.
func (o *outbox) take() (body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for slot, newest := range o.urgent {
		if newest != nil {
			o.urgent[slot] = nil
			return newest
		}
	}
	if len(o.queue) > 0 {
		body, o.queue[0] = o.queue[0], nil
		o.queue = o.queue[1:]
		o.bytes -= len(body)
	}
	return body
}
