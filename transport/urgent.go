package transport

import (
	"sync"

	"github.com/doyen-election/doyen/election"
)

// urgent holds the newest heartbeat, and the newest answer to a heartbeat, that wait to be
// written. A newer one replaces an older one. They are sent before everything else, so that a
// leader keeps its leases however much else there is to send.
type urgent struct {
	mu     sync.Mutex
	bodies [2][]byte
	ready  chan struct{} // of capacity 1: something was put
}

// slotOf is the index of a message in bodies; -1 if it is not urgent.
func slotOf(m election.Message) int {
	switch m.(type) {
	case election.Heartbeat:
		return 0
	case election.HeartbeatAck:
		return 1
	}
	return -1
}

// put adds an encoded message, and reports whether it replaced an older one.
func (u *urgent) put(slot int, body []byte) (replaced bool) {
	u.mu.Lock()
	replaced = u.bodies[slot] != nil
	u.bodies[slot] = body
	u.mu.Unlock()
	select {
	case u.ready <- struct{}{}:
	default:
	}
	return replaced
}

// take returns and removes what waits; an element is nil where nothing waits.
func (u *urgent) take() [2][]byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	bodies := u.bodies
	u.bodies = [2][]byte{}
	return bodies
}
