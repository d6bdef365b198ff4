package transport

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/network"
)

// recording is a stream. Reads return what the field in has, and the field out keeps what is written.
type recording struct {
	network.Stream
	in  io.Reader
	out bytes.Buffer
}

func (r *recording) Read(p []byte) (int, error)        { return r.in.Read(p) }
func (r *recording) Write(p []byte) (int, error)       { return r.out.Write(p) }
func (r *recording) SetReadDeadline(_ time.Time) error { return nil }

// The verdict on a hello is the agent's refusal, unchanged.
func TestAHelloIsJudgedByTheAgent(t *testing.T) {
	refusal := errors.New("another lease")
	for _, want := range []error{nil, refusal} {
		if got := judge(helloOf("a", 1).frame(0), func(Hello) error { return want }); got != want {
			t.Errorf("the verdict is %v, want %v", got, want)
		}
	}
}

func TestFramesKeepTheirBounds(t *testing.T) {
	var out recording
	w := newWire(nil, &out)
	sizes := []int{0, 1, 3, 4095, 4096, 5000, 100_000, 7}
	for _, n := range sizes {
		if err := w.write(bytes.Repeat([]byte{byte(n)}, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*wire, int) ([]byte, error){"read": (*wire).read, "readTimed": (*wire).readTimed} {
		r := newWire(nil, &recording{in: bytes.NewReader(out.out.Bytes())})
		for _, n := range sizes {
			body, err := read(r, 100_000)
			if err != nil || !bytes.Equal(body, bytes.Repeat([]byte{byte(n)}, n)) {
				t.Fatalf("%s of %d: %d bytes, %v", name, n, len(body), err)
			}
		}
		if _, err := read(r, 100_000); err != io.EOF {
			t.Errorf("%s at the end: %v", name, err)
		}
		for cut := 1; cut < frameHeader+5; cut++ {
			r := newWire(nil, &recording{in: bytes.NewReader([]byte{0, 0, 0, 5, 1, 2, 3, 4, 5}[:cut])})
			if _, err := read(r, 100); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s of a frame cut at %d: %v", name, cut, err)
			}
		}
		huge := newWire(nil, &recording{in: bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 1})})
		if _, err := read(huge, 1<<20); err == nil || cap(huge.buf) != 0 {
			t.Errorf("%s of a huge frame: %v, %d bytes taken", name, err, cap(huge.buf))
		}
	}
}

func FuzzGreeting(f *testing.F) {
	hello, err := cbor.Marshal(helloOf("a", 1).frame(7))
	if err != nil {
		f.Fatal(err)
	}
	yes, err := cbor.Marshal(verdictFrame{Accepted: true})
	if err != nil {
		f.Fatal(err)
	}
	no, err := cbor.Marshal(verdictFrame{Reason: "no"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello, yes)
	f.Add(hello, no)
	f.Add([]byte{0xa0}, []byte{0xa0})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var said recording
		w := newWire(nil, &said)
		for _, body := range [][]byte{first, second} {
			if err := w.send(body); err != nil {
				t.Fatal(err)
			}
		}
		w = newWire(nil, &recording{in: &said.out})
		theirs, err := greet(w, helloOf("b", 2).frame(0), func(Hello) error { return nil })
		if err == nil && theirs.hello().Validate() != nil {
			t.Fatalf("accepted %+v", theirs)
		}
	})
}
