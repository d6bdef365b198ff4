package membership

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

// guard checks what arrives before memberlist gets it. It passes only what was made with a cluster key
// and has the form of what an agent sends (grammar.go). Memberlist alone would buffer as much as
// strangers announce, and encrypt answers to them; and anyone with the key could make it panic. Without a
// cluster key, only the form is checked.
type guard struct {
	label string
	left  func(node string)             // called for a node that announces, with the key, that it leaves
	keys  atomic.Pointer[[]cipher.AEAD] // nil: no encryption
}

const (
	labelled     = 244 // the first byte of a label, in packets and streams
	sealVersion  = 1   // of memberlist's encryption; with version 0, memberlist would trust a byte of the sender
	sealOverhead = 1 + 12 + 16
	minSealed    = sealOverhead + 1
)

// fault is why the guard did not pass something.
type fault struct {
	kind faultKind
	text string // the other cluster's name, or what is wrong with a message
}

func (f *fault) Error() string { return f.kind.String() + f.text }

type faultKind int

const (
	faultNoise      faultKind = iota // no agent of any cluster makes this, or it is too long
	faultCluster                     // made by an agent of another cluster
	faultKey                         // made with another key
	faultNoKey                       // made without a key, but this agent has one
	faultNeedless                    // made with a key, but this agent has none
	faultMessage                     // made with the key, but not what an agent sends
	faultIncomplete                  // the message ended too early, or there was no room for it
)

// ofKey reports whether the two sides have different keys, or only one has a key.
func (k faultKind) ofKey() bool { return k == faultKey || k == faultNoKey || k == faultNeedless }

// String uses memberlist's own words for what is wrong with a key. The function refuse sends these words,
// and the other side, of any version, searches for them.
func (k faultKind) String() string {
	return [...]string{
		faultNoise:      "not gossip",
		faultCluster:    "another cluster: ",
		faultKey:        "no installed keys could decrypt the message",
		faultNoKey:      "encryption is configured but remote state is not encrypted",
		faultNeedless:   "remote state is encrypted and encryption is not configured",
		faultMessage:    "not a message of an agent: ",
		faultIncomplete: "incomplete: ",
	}[k]
}

// setKeys replaces the keys that open messages.
func (g *guard) setKeys(keys [][]byte) error {
	all := make([]cipher.AEAD, 0, len(keys))
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return err
		}
		all = append(all, aead)
	}
	g.keys.Store(&all)
	return nil
}

// open decrypts what follows a label, if one of the keys fits. It stores the result in scratch.
func (g *guard) open(scratch, sealed, data []byte) ([]byte, bool) {
	if len(sealed) < minSealed || sealed[0] != sealVersion {
		return nil, false
	}
	for _, key := range *g.keys.Load() {
		if plain, err := key.Open(scratch[:0], sealed[1:13], sealed[13:], data); err == nil {
			return plain, true
		}
	}
	return nil, false
}

// packet returns why memberlist should not get a datagram, or nil if it should. Each goroutine needs its
// own scratch.
func (g *guard) packet(b, scratch []byte) *fault {
	if len(b) < 2 || b[0] != labelled || b[1] == 0 || len(b) < 2+int(b[1]) {
		return &fault{kind: faultNoise}
	}
	label, rest := string(b[2:2+b[1]]), b[2+int(b[1]):]
	if label != g.label {
		return &fault{faultCluster, label}
	}
	if g.keys.Load() != nil {
		plain, ok := g.open(scratch, rest, []byte(label))
		if !ok {
			return &fault{kind: faultKey}
		}
		rest = plain
	}
	if err := checkPacket(rest, g.left); err != nil {
		return &fault{faultMessage, err.Error()}
	}
	return nil
}

// inbound reads the one message of a stream that another agent or a stranger opened, and returns its
// bytes unchanged.
func (g *guard) inbound(r io.Reader, p *place) ([]byte, *fault) {
	in := newIntake(r, p)
	head, err := in.next(2)
	if err != nil {
		return nil, &fault{kind: faultIncomplete}
	}
	if head[0] != labelled || head[1] == 0 {
		return nil, &fault{kind: faultNoise}
	}
	label, err := in.next(int(head[1]))
	if err != nil {
		return nil, &fault{kind: faultIncomplete}
	}
	if string(label) != g.label {
		return nil, &fault{faultCluster, string(label)}
	}
	return g.message(in, false)
}

// answer reads the answer on a stream that this agent opened.
func (g *guard) answer(r io.Reader, p *place) ([]byte, *fault) {
	return g.message(newIntake(r, p), true)
}

// message reads what follows the label.
func (g *guard) message(in *intake, answer bool) ([]byte, *fault) {
	kind, err := in.peek()
	switch keyed := g.keys.Load() != nil; {
	case err != nil:
		return nil, &fault{faultIncomplete, err.Error()}
	case keyed && kind == saySealed:
		return g.sealed(in, answer)
	case kind == sayError && answer:
		return nil, in.refusal()
	case keyed:
		return nil, &fault{kind: faultNoKey}
	case kind == saySealed:
		return nil, &fault{kind: faultNeedless}
	}
	if err := checkStream(in, answer, g.left); err != nil {
		return nil, in.fault(err)
	}
	return in.buffer, nil
}

// sealed reads an encrypted message.
func (g *guard) sealed(in *intake, answer bool) ([]byte, *fault) {
	start := len(in.buffer)
	head, err := in.next(5)
	if err != nil {
		return nil, in.fault(err)
	}
	data := append(append([]byte(nil), head...), g.label...)
	length := int64(binary.BigEndian.Uint32(head[1:]))
	if length < minSealed || length > maxStream {
		return nil, &fault{faultNoise, fmt.Sprintf(": a message of %d bytes", length)}
	}
	body, err := in.next(int(length))
	if err != nil {
		return nil, in.fault(err)
	}
	plain, ok := g.open(nil, body, data)
	if !ok {
		return nil, &fault{kind: faultKey}
	}
	c := cursor(plain)
	if err := checkStream(&c, answer, g.left); err != nil {
		return nil, &fault{faultMessage, err.Error()}
	}
	return in.buffer[:start+5+int(length)], nil
}

// intake is a source that keeps all bytes that it has read of a stream, and counts them against the
// stream's place.
type intake struct {
	from   *bufio.Reader
	place  *place
	buffer []byte
}

func newIntake(r io.Reader, p *place) *intake {
	return &intake{from: bufio.NewReaderSize(r, 4<<10), place: p}
}

// next reads n more bytes. It allocates memory only for bytes that have arrived, not for announced ones.
func (in *intake) next(n int) ([]byte, error) {
	start := len(in.buffer)
	if err := in.place.announce(start + n); err != nil {
		return nil, err
	}
	for want := start + n; len(in.buffer) < want; {
		if len(in.buffer) == cap(in.buffer) {
			size := min(max(2*cap(in.buffer), 4<<10), max(want, 4<<10))
			if err := in.place.grow(size - cap(in.buffer)); err != nil {
				return nil, err
			}
			in.buffer = append(make([]byte, 0, size), in.buffer...)
		}
		got, err := in.from.Read(in.buffer[len(in.buffer):min(cap(in.buffer), want)])
		in.buffer = in.buffer[:len(in.buffer)+got]
		if err != nil && len(in.buffer) < want {
			return nil, err
		}
	}
	return in.buffer[start:], nil
}

// peek returns the next byte without consuming it.
func (in *intake) peek() (byte, error) {
	b, err := in.from.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// fault turns a reading error into a fault: the message was wrong, or did not come.
func (in *intake) fault(err error) *fault {
	var f *fault
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errLong):
		return &fault{faultNoise, ": " + err.Error()}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errUnread), errors.As(err, &timeout):
		return &fault{faultIncomplete, err.Error()}
	}
	return &fault{faultMessage, err.Error()}
}

// refusal reads why the other side refused what this agent sent. The other side could not decrypt it, so
// its answer is in plain text. See refuse.
func (in *intake) refusal() *fault {
	text, _ := in.from.Peek(min(in.from.Buffered(), 200))
	// What the other side reports is the reverse of how this side sees it.
	for word, kind := range map[faultKind]faultKind{faultKey: faultKey, faultNoKey: faultNeedless, faultNeedless: faultNoKey} {
		if strings.Contains(string(text), word.String()) {
			return &fault{kind, " (reported by the other side)"}
		}
	}
	return &fault{faultMessage, "an error in plain text"}
}

// refuse is the answer to a stream that was made with another key, without the key that it needs, or with a
// key where none is used. It is always the same few bytes in plain text, so that no stranger can make an
// agent encrypt. It reveals only that the cluster's name is right, and whether this agent has a key.
func refuse(k faultKind) []byte {
	const field = "Error"
	text := k.String()
	b := append([]byte{sayError, 0x81, 0xa0 | byte(len(field))}, field...)
	return append(append(b, 0xd9, byte(len(text))), text...)
}
