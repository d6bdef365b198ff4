package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

const (
	// queueLength and queueBytes bound what waits to be written to one peer.
	queueLength = 256
	queueBytes  = 4 << 20
	// writeTimeout is how long a peer may read nothing, once the buffers in between are
	// full.
	writeTimeout = 2 * time.Second
)

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

// session is one connection to a peer on which both sides accepted each other.
type session struct {
	wire  *wire
	began time.Time
	queue chan []byte
	bytes atomic.Int64  // in queue
	first urgent        // sent before what is in queue
	drain chan struct{} // closed: write what is queued, then close this half
	gone  chan struct{} // closed: the connection is closed, or about to be
	done  chan struct{} // closed: both goroutines have ended
	once  sync.Once
	err   error // why it ended; set before gone is closed
}

func newSession(w *wire) *session {
	return &session{
		wire: w, began: time.Now(), queue: make(chan []byte, queueLength), first: urgent{ready: make(chan struct{}, 1)},
		drain: make(chan struct{}), gone: make(chan struct{}), done: make(chan struct{}),
	}
}

// over returns a channel that is closed when the session has ended, nil if there is no
// session.
func (s *session) over() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.done
}

// enqueue has a message sent, of which body is the encoded form. It reports whether there
// was room.
func (s *session) enqueue(m election.Message, body []byte, count *counters) bool {
	if slot := slotOf(m); slot >= 0 {
		if s.first.put(slot, body) {
			count.dropped[dropOutdated].Add(1)
		}
		return true
	}
	size := int64(len(body))
	if s.bytes.Add(size) > queueBytes {
		s.bytes.Add(-size)
		return false
	}
	select {
	case s.queue <- body:
		return true
	default:
		s.bytes.Add(-size)
		return false
	}
}

// close ends the session. If it is called with several reasons, the first counts.
func (s *session) close(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.gone)
		_ = s.wire.stream.Conn().Close() // an error changes nothing
	})
}

// read delivers what arrives until the connection ends, then waits until write has ended.
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

// plain replaces an error of the layers below by one in a few words.
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

// write sends what is queued, all that waits at once, until the session ends or is
// drained.
func (s *session) write(count *counters, written chan<- struct{}) {
	defer close(written)
	for {
		var body []byte
		select {
		case <-s.first.ready:
		case body = <-s.queue:
		case <-s.drain:
			if err := s.writeRest(count); err != nil {
				s.close(err)
			}
			return
		case <-s.gone:
			return
		}
		if err := s.writeBatch(body, count); err != nil {
			s.close(err)
			return
		}
	}
}

// writeBatch sends the urgent messages, then body unless it is nil, then what waits in the
// queue.
func (s *session) writeBatch(body []byte, count *counters) error {
	if err := s.wire.stream.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for sent := uint64(0); ; {
		for _, first := range s.first.take() {
			if first == nil {
				continue
			}
			sent++
			if err := s.writeOne(first, count); err != nil {
				return err
			}
		}
		if body == nil {
			select {
			case body = <-s.queue:
			default:
				count.messagesOut.Add(sent)
				return s.wire.flush()
			}
		}
		s.bytes.Add(-int64(len(body)))
		sent++
		if err := s.writeOne(body, count); err != nil {
			return err
		}
		body = nil
	}
}

func (s *session) writeOne(body []byte, count *counters) error {
	if err := s.wire.write(body); err != nil {
		return err
	}
	count.bytesOut.Add(uint64(frameHeader + len(body)))
	return nil
}

// writeRest sends what is left and closes this side's half of the stream. Once the peer has
// read all of it, the peer closes the connection.
func (s *session) writeRest(count *counters) error {
	if err := s.writeBatch(nil, count); err != nil {
		return err
	}
	return s.wire.stream.CloseWrite()
}

// finish writes what is queued and waits until the peer has read it, or ctx ends.
func (s *session) finish(ctx context.Context) {
	close(s.drain)
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}
