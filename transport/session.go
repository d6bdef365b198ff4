package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// writeTimeout is how long a peer may read nothing once the buffers between the two are full.
const writeTimeout = 2 * time.Second

var (
	errClosedByPeer = errors.New("connection closed by the peer")
	errReset        = errors.New("connection reset by the peer's host")
	errUnacked      = errors.New("the peer's host does not answer")
	errSuspected    = errors.New("silent")
	errReplaced     = errors.New("replaced by a newer connection")
	errRestarted    = errors.New("the peer connected again")
	errRemoved      = errors.New("no longer a member")
	errClosing      = errors.New("transport closed")
)

// session is one connection to a peer, after each side has accepted the other.
type session struct {
	wire  *wire
	began time.Time
	out   outbox
	drain chan struct{} // closed: write what is queued, then close this half
	gone  chan struct{} // closed: the connection is closed, or will be very soon
	done  chan struct{} // closed: both goroutines have ended
	once  sync.Once
	err   error // why the session ended; set before gone is closed
}

func newSession(w *wire) *session {
	return &session{
		wire: w, began: time.Now(), out: outbox{ready: make(chan struct{}, 1)},
		drain: make(chan struct{}), gone: make(chan struct{}), done: make(chan struct{}),
	}
}

// over returns a channel that is closed when the session has ended. It returns nil if there is no
// session.
func (s *session) over() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.done
}

// close ends the session, if there is one. If it is called several times, the first reason counts.
func (s *session) close(err error) {
	if s == nil {
		return
	}
	s.once.Do(func() {
		s.err = err
		close(s.gone)
		_ = s.wire.conn.Close() // there is nothing to do about an error
	})
}

// read delivers the messages that arrive until the connection ends. Then it waits until write has ended.
func (s *session) read(deliver func(election.Message), count *counters, written <-chan struct{}) {
	defer close(s.done)
	for {
		body, err := s.wire.readTimed(codec.MaxMessage)
		if err != nil {
			s.close(plain(err))
			break
		}
		count.bytesIn.Add(uint64(frameHeader + len(body)))
		m, err := codec.DecodeMessage(body)
		if err != nil {
			count.dropped[dropFor(err)].Add(1)
			continue
		}
		deliver(m)
	}
	<-written
}

// plain replaces an error of the layers below with a short one.
func plain(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errClosedByPeer
	case errors.Is(err, syscall.ECONNRESET):
		return errReset
	case errors.Is(err, syscall.ETIMEDOUT):
		return errUnacked
	}
	return err
}

func dropFor(err error) int {
	if _, unknown := errors.AsType[*codec.UnknownKindError](err); unknown {
		return dropUnknownKind
	}
	return dropInvalid
}

// write sends queued messages until the session ends. When the session is drained, write closes this side's
// half of the stream. The peer then reads the rest, and closes the connection.
func (s *session) write(count *counters, written chan<- struct{}) {
	defer close(written)
	for draining := false; !draining; {
		select {
		case <-s.out.ready:
		case <-s.drain:
			draining = true
		case <-s.gone:
			return
		}
		err := s.writeBatch(count)
		if err == nil && draining {
			err = s.wire.stream.CloseWrite()
		}
		if err != nil {
			s.close(err)
			return
		}
	}
}

// writeBatch sends all messages that wait.
func (s *session) writeBatch(count *counters) error {
	if err := s.wire.stream.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for body := s.out.take(); body != nil; body = s.out.take() {
		if err := s.wire.write(body); err != nil {
			return err
		}
		count.bytesOut.Add(uint64(frameHeader + len(body)))
	}
	return s.wire.flush()
}

// finish writes the queued messages and waits until the peer has read them, or ctx ends.
func (s *session) finish(ctx context.Context) {
	close(s.drain)
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}
