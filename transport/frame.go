package transport

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A frame is a length in 4 bytes, big endian, and then that many bytes.

const (
	frameHeader = 4
	// bodyTimeout is how long the rest of a frame may take after its first byte.
	bodyTimeout = 5 * time.Second
	// keepBuffer is the largest read buffer that is kept between frames.
	keepBuffer = 16 << 10
)

// wire reads and writes frames on one stream. One goroutine may read while another writes.
type wire struct {
	conn   io.Closer // the connection that the stream belongs to
	stream network.MuxedStream
	r      *bufio.Reader
	w      *bufio.Writer
	buf    []byte
	early  []byte // a frame that peek has read; nil: none
}

func newWire(c io.Closer, s network.MuxedStream) *wire {
	return &wire{conn: c, stream: s, r: bufio.NewReader(s), w: bufio.NewWriter(s)}
}

// write buffers one frame; flush sends what is buffered.
func (w *wire) write(body []byte) error {
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[:], uint32(len(body)))
	if _, err := w.w.Write(header[:]); err != nil {
		return err
	}
	_, err := w.w.Write(body)
	return err
}

func (w *wire) flush() error { return w.w.Flush() }

// send writes one frame at once.
func (w *wire) send(body []byte) error {
	if err := w.write(body); err != nil {
		return err
	}
	return w.flush()
}

// peek does the same as read, but the next call of read returns the same frame again.
func (w *wire) peek(limit int) ([]byte, error) {
	body, err := w.read(limit)
	if err == nil {
		w.early = bytes.Clone(body)
	}
	return body, err
}

// read returns the next frame, which is valid until the next call. For a frame over the limit it returns
// an error, and allocates no memory. read waits for a frame until the stream's deadline.
func (w *wire) read(limit int) ([]byte, error) {
	if body := w.early; body != nil {
		w.early = nil
		return body, nil
	}
	header, err := w.r.Peek(frameHeader)
	if err != nil {
		return nil, cut(err, len(header) > 0)
	}
	n := binary.BigEndian.Uint32(header)
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("frame of %d bytes is over the limit of %d", n, limit)
	}
	if _, err := w.r.Discard(frameHeader); err != nil {
		return nil, err
	}
	if cap(w.buf) < int(n) || cap(w.buf) > keepBuffer {
		w.buf = make([]byte, max(int(n), 512))
	}
	body := w.buf[:n]
	_, err = io.ReadFull(w.r, body)
	return body, cut(err, true)
}

// readTimed does the same as read, with a time limit: the rest of a frame must arrive within bodyTimeout of its first byte.
// It replaces the stream's read deadline.
func (w *wire) readTimed(limit int) ([]byte, error) {
	if _, err := w.r.Peek(1); err != nil {
		return nil, err
	}
	if err := w.stream.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return nil, err
	}
	body, err := w.read(limit)
	if err != nil {
		return nil, err
	}
	return body, w.stream.SetReadDeadline(time.Time{})
}

// cut returns an error that shows whether the stream ended inside a frame or between two frames.
func cut(err error, inside bool) error {
	if err == io.EOF && inside {
		return io.ErrUnexpectedEOF
	}
	return err
}
