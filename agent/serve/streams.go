package serve

import (
	"context"
	"net"
	"sync"
	"time"
)

// streams counts the connections that were taken over from the HTTP server, which knows
// nothing of them any more.
type streams struct {
	mu      sync.Mutex
	open    map[net.Conn]struct{}
	closed  bool
	closing chan struct{} // closed: the server closes
	empty   chan struct{} // closed: the server closes, and no stream is open
}

func newStreams() *streams {
	return &streams{open: map[net.Conn]struct{}{}, closing: make(chan struct{}), empty: make(chan struct{})}
}

// begin counts one more connection, and returns false if the server closes.
func (s *streams) begin(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *streams) done(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.closed && len(s.open) == 0 {
		close(s.empty)
	}
}

// close asks the streams to end, and waits for that until ctx ends.
func (s *streams) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		if len(s.open) == 0 {
			close(s.empty)
		}
		for c := range s.open { // a reader that does not read keeps nobody waiting
			_ = c.SetWriteDeadline(time.Now().Add(lastWordTime))
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
