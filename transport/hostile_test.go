package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multistream"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/internal/door"
)

func TestWhoeverKnocksAtThePortDisturbsNobody(t *testing.T) {
	before := runtime.NumGoroutine()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2), tune: func(l *limits) { l.greet, l.turn = l.greet/4, l.turn/4 }})
	introduce(t, a, b)
	exchange(t, a, b) // so that every goroutine of the two has begun
	quiet := runtime.NumGoroutine()
	var conns []net.Conn
	knock := func(first []byte) {
		c, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		_, _ = c.Write(first) // it may be gone already
	}
	noise := []byte("\x13/multistream/1.0.0\n\x07/noise\n")
	for i := range 2 * door.Unproven {
		knock([][]byte{
			nil,                               // silence
			[]byte("GET / HTTP/1.1\r\n\r\n"),  // another protocol
			bytes.Repeat([]byte{0xff}, 1<<12), // garbage
			noise,                             // half a handshake
			append(noise[:len(noise):len(noise)], 0xff, 0xff, 1, 2, 3), // half a handshake, and the start of a long message
		}[i%5])
		exchange(t, a, b)
		if n, _ := b.door.places.Taken(); n > maxPendingPerIP {
			t.Fatalf("%d connections pending", n)
		}
	}
	if b.Stats().Refusals["pending_limit"] == 0 {
		t.Error("no connection was turned away")
	}
	for _, c := range conns {
		if isTimeout(drained(c)) {
			t.Fatalf("a connection is still open after %s", patienceOfTests)
		}
		_ = c.Close()
	}
	exchange(t, a, b)
	eventually(t, "no pending connection", func() bool {
		pending, _ := b.door.places.Taken()
		return pending == 0
	})
	eventually(t, "the goroutines' end", func() bool { return runtime.NumGoroutine() <= quiet })
	closeNow(t, a)
	closeNow(t, b)
	eventually(t, "the goroutines' end", func() bool { return runtime.NumGoroutine() <= before })
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// rogue is a peer that has the key and keeps no rules.
func rogue(t *testing.T) (victim *Transport, self election.PeerID, dial func() transport.CapableConn) {
	t.Helper()
	ids := identities(t, 2)
	victim = start(t, Config{Key: ids[1].key, Hello: helloOf("victim", 2)})
	key, err := crypto.UnmarshalEd25519PrivateKey(ids[0].key)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(hostConfig{key: key, gate: allow{}, door: &network.NullResourceManager{}, within: limitsFor(0)})
	if err != nil {
		t.Fatal(err)
	}
	victim.SetPeers([]Peer{{ID: ids[0].id, Addr: loopback}})
	id, err := peer.Decode(string(victim.self))
	if err != nil {
		t.Fatal(err)
	}
	return victim, ids[0].id, func() transport.CapableConn {
		ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
		defer cancel()
		c, err := h.dial(ctx, id, victim.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the victim may have closed it
		return c
	}
}

func stream(t *testing.T, c transport.CapableConn) *wire {
	t.Helper()
	s, err := c.OpenStream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(time.Now().Add(patienceOfTests))
	if err := multistream.SelectProtoOrFail(protocolID, s); err != nil {
		t.Fatal(err)
	}
	return newWire(c, s)
}

// ended waits until the other side has closed the stream.
func ended(t *testing.T, w *wire) {
	t.Helper()
	if _, err := io.Copy(io.Discard, w.r); isTimeout(err) {
		t.Errorf("the stream is still open")
	}
}

func TestARogueHelloIsRefusedInWords(t *testing.T) {
	t.Parallel()
	victim, _, dial := rogue(t)
	frame := func(change func(*helloFrame)) []byte {
		f := helloOf("rogue", 1).frame(0)
		change(&f)
		body, err := cbor.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for want, body := range map[string][]byte{
		"protocol version 2":   frame(func(f *helloFrame) { f.Protocol = 2 }),
		"lineage ID is 0":      frame(func(f *helloFrame) { f.Lineage = 0 }),
		"not valid":            frame(func(f *helloFrame) { f.Name = strings.Repeat("n", 64) }),
		"over the limit":       frame(func(f *helloFrame) { f.Cluster = strings.Repeat("c", maxText+1) }),
		"negative":             frame(func(f *helloFrame) { f.Lease = -1 }),
		"invalid hello":        {0x41, 0x41, 0x1c},
		"cannot unmarshal":     {0x01},
		"duplicate":            {0xa2, 0x01, 0x01, 0x01, 0x01},
		"indefinite-length":    {0xbf, 0xff},
		"CBOR tag isn't allow": {0xc2, 0x41, 0x01},
	} {
		w := stream(t, dial())
		if err := errors.Join(w.send(body), sendCBOR(w, verdictOf(nil))); err != nil {
			t.Fatal(err)
		}
		if _, err := w.read(maxHello); err != nil { // its hello
			t.Fatal(err)
		}
		answer, err := w.read(maxHello)
		if err != nil {
			t.Fatal(err)
		}
		var v verdictFrame
		if err := frames().Unmarshal(answer, &v); err != nil {
			t.Fatal(err)
		}
		if v.Accepted || !strings.Contains(v.Reason, want) {
			t.Errorf("want %q, got %+v", want, v)
		}
		_ = w.stream.CloseWrite() // it may be gone already
		ended(t, w)
		if r := await[Refused](t, victim); !strings.Contains(r.Err.Error(), want) || r.ByPeer {
			t.Errorf("want %q, told %+v", want, r)
		}
	}
}

func TestARogueThatStopsHalfWayIsCutOff(t *testing.T) {
	t.Parallel()
	victim, _, dial := rogue(t)
	mute := dial() // never opens a stream
	halfway := dial()
	half := stream(t, halfway)
	if _, err := half.stream.Write([]byte{0, 0, 0, 200, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	ended(t, half)
	huge := stream(t, dial())
	if _, err := huge.stream.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	ended(t, huge)
	eventually(t, "the end of the mute connection", mute.IsClosed)
	eventually(t, "the end of the connection with half a frame", halfway.IsClosed)
	select {
	case e := <-victim.Events():
		t.Errorf("told %+v", e)
	default:
	}
}

// greeted returns a rogue's stream on which both sides accepted each other.
func greeted(t *testing.T, victim *Transport, dial func() transport.CapableConn) *wire {
	t.Helper()
	w := stream(t, dial())
	if _, err := greet(w, helloOf("rogue", 1).frame(0), func(Hello) error { return nil }); err != nil {
		t.Fatal(err)
	}
	await[Connected](t, victim)
	return w
}

func TestAnOversizedFrameEndsTheConnection(t *testing.T) {
	t.Parallel()
	victim, _, dial := rogue(t)
	w := greeted(t, victim, dial)
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[:], codec.MaxMessage+1)
	if _, err := w.stream.Write(header[:]); err != nil {
		t.Fatal(err)
	}
	if l := await[Lost](t, victim); !strings.Contains(l.Err.Error(), "over the limit") {
		t.Errorf("lost for %v", l.Err)
	}
	ended(t, w)
}

func TestWhatIsNotAMessageIsCountedAndIgnored(t *testing.T) {
	t.Parallel()
	victim, self, dial := rogue(t)
	w := greeted(t, victim, dial)
	good, err := codec.EncodeMessage(note(5))
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{{}, {0xff}, {0x82, 0x19, 0x10, 0x00, 0xa0}, {0x82, 0x02, 0xa0}, good} {
		if err := w.send(body); err != nil {
			t.Fatal(err)
		}
	}
	if m := await[Message](t, victim); m.Peer != self || number(m.Message) != 5 {
		t.Errorf("got %+v", m)
	}
	d := victim.Stats().Dropped
	if d["invalid"] != 3 || d["unknown_kind"] != 1 {
		t.Errorf("counted %v", d)
	}
}

func TestASecondConnectionReplacesTheFirst(t *testing.T) {
	t.Parallel()
	victim, self, dial := rogue(t)
	first := dial()
	greeted(t, victim, func() transport.CapableConn { return first })
	// The rogue's hello does not show that it still holds the first connection.
	second := stream(t, dial())
	if _, err := greet(second, helloOf("rogue", 9).frame(0), func(Hello) error { return nil }); err != nil {
		t.Fatal(err)
	}
	await[Lost](t, victim)
	if c := await[Connected](t, victim); c.Hello.Lineage != 9 || c.Peer != self {
		t.Errorf("got %+v", c)
	}
	eventually(t, "the end of the first connection", first.IsClosed)
}

func TestThePeerThatShouldWaitIsNotLetInWhenItDials(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	a.SetPeers([]Peer{{ID: b.self, Addr: loopback}})
	b.SetPeers([]Peer{at(a)})
	id, err := peer.Decode(string(a.self))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	defer cancel()
	if _, err := b.open(ctx, id, a.Addr()); err == nil {
		t.Error("it was let in")
	}
	if a.Stats().Refusals["wrong_direction"] == 0 {
		t.Error("not counted")
	}
}

// allow is a gater that lets everybody in.
type allow struct{ gater }

func (allow) InterceptAccept(network.ConnMultiaddrs) bool { return true }
func (allow) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool {
	return true
}
