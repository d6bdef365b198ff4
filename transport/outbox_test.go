package transport

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// page is a stream that keeps what is written.
type page struct {
	network.Stream
	written bytes.Buffer
}

func (p *page) Write(b []byte) (int, error)        { return p.written.Write(b) }
func (p *page) Read(b []byte) (int, error)         { return p.written.Read(b) }
func (p *page) SetWriteDeadline(_ time.Time) error { return nil }

func TestTheNewestHeartbeatIsWrittenBeforeWhatIsQueued(t *testing.T) {
	p := &page{}
	var count counters
	s := newSession(&wire{stream: p, r: bufio.NewReader(p), w: bufio.NewWriter(p)})
	put := func(m election.Message) bool {
		body, err := codec.EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		ok, replaced := s.out.put(m, body)
		if replaced {
			count.dropped[dropOutdated].Add(1)
		}
		return ok
	}
	for i := range queueLength {
		put(note(i))
	}
	if put(note(queueLength)) {
		t.Fatal("the queue has no end")
	}
	for i := range 3 {
		if !put(beat(i)) {
			t.Fatal("a heartbeat has no room behind other messages")
		}
	}
	if err := s.writeBatch(&count); err != nil {
		t.Fatal(err)
	}
	for i := range queueLength + 1 {
		body, err := s.wire.read(codec.MaxMessage)
		if err != nil {
			t.Fatal(err)
		}
		m, err := codec.DecodeMessage(body)
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := m.(election.Heartbeat); i == 0 && (!ok || h.Send != 2) {
			t.Errorf("first was %+v", m)
		} else if i > 0 && number(m) != i-1 {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if n := count.dropped[dropOutdated].Load(); n != 2 {
		t.Errorf("counted %d outdated", n)
	}
}
