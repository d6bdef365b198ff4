package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/memberlist"
)

// A message of memberlist is a byte for its kind, and a map in MessagePack from field names to numbers,
// booleans and strings. Memberlist's decoders trust what they receive: announced lengths, the depth of
// nesting, and how much a compressed message grows. So this code reads each message first, and memberlist
// gets only what an agent of Doyen sends.
const (
	sayPing = iota
	sayIndirectPing
	sayAck
	saySuspect
	sayAlive
	sayDead
	sayState // an exchange of all known nodes, in streams
	sayCompound
	sayUser     // no agent sends this kind
	sayCompress // no agent sends this kind
	saySealed   // encrypted, in streams
	sayNack
	sayCRC
	sayError
)

const (
	// maxNodes bounds the nodes that an exchange announces: members, and dead nodes
	// that are not yet forgotten.
	maxNodes  = 4 * maxMembers
	maxFields = 16
	// A node's incarnation rises by one each time it refutes an accusation. An accusation's bound is far below
	// that of the refutation, so that the refutation never exceeds its bound.
	maxAccusation  = 1 << 30
	maxIncarnation = 1 << 31
	// versions are what every node of this release sends: the lowest, the highest and the used version of
	// memberlist's protocol, and three zeros, since no other protocol runs over it. They are not signed,
	// and memberlist refuses a whole exchange if the versions of one live node don't fit those of all
	// others. An update to a memberlist with other versions first needs a release that accepts both.
	versions = "\x01\x05\x02\x00\x00\x00"
)

var (
	errShort    = errors.New("it ends too early")
	errVersions = errors.New("a node uses other versions of the gossip protocol than this release")
)

// source gives the bytes of a message. The slice that next returns is valid only until the next call.
type source interface {
	next(n int) ([]byte, error)
}

// cursor is a source whose bytes are all in memory.
type cursor []byte

func (c *cursor) next(n int) ([]byte, error) {
	if n < 0 || len(*c) < n {
		return nil, errShort
	}
	b := (*c)[:n]
	*c = (*c)[n:]
	return b, nil
}

// checkPacket returns an error if memberlist should not get this packet. Its label and encryption are
// already removed.
func checkPacket(b []byte, left func(node string)) error {
	if len(b) >= 5 && b[0] == sayCRC {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			return errors.New("its checksum does not match")
		}
		b = b[5:]
	}
	if len(b) == 0 {
		return errShort
	}
	if b[0] != sayCompound {
		return checkPart(b, left)
	}
	c := cursor(b[1:])
	count, err := c.next(1)
	if err != nil {
		return err
	}
	lengths, err := c.next(2 * int(count[0]))
	if err != nil {
		return err
	}
	for ; len(lengths) > 0; lengths = lengths[2:] {
		part, err := c.next(int(binary.BigEndian.Uint16(lengths)))
		if err != nil {
			return err
		}
		if err := checkPart(part, left); err != nil {
			return err
		}
	}
	return nil
}

// checkPart checks one message of a packet.
func checkPart(b []byte, left func(node string)) error {
	if len(b) == 0 {
		return errShort
	}
	switch b[0] {
	case sayPing, sayIndirectPing, sayAck, saySuspect, sayAlive, sayDead, sayNack:
	default:
		return fmt.Errorf("no agent sends a packet of kind %d", b[0])
	}
	c := cursor(b[1:])
	f, err := readFields(&c)
	if err != nil {
		return err
	}
	if b[0] == sayAlive && !f.fit() {
		return errVersions
	}
	if err := f.checkIncarnation(b[0] == saySuspect || b[0] == sayDead); err != nil {
		return err
	}
	if node := f["Node"].text; b[0] == sayDead && node == f["From"].text {
		left(node)
	}
	return nil
}

// checkStream reads one message of a stream, and returns an error if memberlist should not get it. Label
// and encryption are already removed. answer is set if this agent opened the stream.
func checkStream(s source, answer bool, left func(node string)) error {
	kind, err := s.next(1)
	if err != nil {
		return err
	}
	switch k := kind[0]; {
	case k == sayState:
		return checkState(s, left)
	case k == sayPing && !answer, (k == sayAck || k == sayError) && answer:
		_, err := readFields(s)
		return err
	default:
		return fmt.Errorf("no agent sends a stream of kind %d", k)
	}
}

// checkState reads an exchange: a header, and then as many nodes as the header announces.
func checkState(s source, left func(node string)) error {
	head, err := readFields(s)
	if err != nil {
		return err
	}
	nodes, beside := head["Nodes"].n, head["UserStateLen"].n
	if nodes > maxNodes || beside != 0 {
		return fmt.Errorf("it announces %d nodes and %d bytes, at most %d and none are allowed", nodes, beside, maxNodes)
	}
	for range nodes {
		f, err := readFields(s)
		if err != nil {
			return err
		}
		if !f.fit() {
			return errVersions
		}
		state := memberlist.NodeStateType(f["State"].n)
		if err := f.checkIncarnation(state != memberlist.StateAlive); err != nil {
			return err
		}
		if state == memberlist.StateLeft {
			left(f["Name"].text)
		}
	}
	return nil
}

// fields are the values of a map, by field name.
type fields map[string]value

// fit reports whether a node has the versions of this release.
func (f fields) fit() bool { return f["Vsn"].text == versions }

func (f fields) checkIncarnation(accuses bool) error {
	if n := f["Incarnation"].n; n > maxIncarnation || accuses && n > maxAccusation {
		return fmt.Errorf("incarnation %d is higher than an agent can reach", n)
	}
	return nil
}

// maxKey is longer than the name of any field.
const maxKey = 31

// readFields reads a map. Its keys are strings, and none of its values is a map.
func readFields(s source) (fields, error) {
	head, err := readValue(s)
	if err != nil {
		return nil, err
	}
	if head.kind != isMap || head.n > maxFields {
		return nil, fmt.Errorf("it does not start with a map of at most %d fields", maxFields)
	}
	f := fields{}
	for range head.n {
		key, err := readValue(s)
		if err != nil {
			return nil, err
		}
		if _, twice := f[key.text]; twice || key.kind != isString || len(key.text) > maxKey {
			return nil, fmt.Errorf("%.20q is not a field name, or is given twice", key.text)
		}
		v, err := readValue(s)
		if err == nil && v.kind == isMap {
			err = errors.New("it is a map")
		}
		if err != nil {
			return nil, fmt.Errorf("field %.20q: %w", key.text, err)
		}
		f[key.text] = v
	}
	return f, nil
}

// value is one value of MessagePack, or the head of a map.
type value struct {
	kind valueKind
	n    uint64 // the number, or the number of fields in a map
	text string
}

type valueKind int

const (
	isNumber valueKind = iota // a number, a boolean or nil
	isString
	isBytes
	isMap
)

// negative replaces every negative number: it exceeds every bound that a field may have.
const negative = 1 << 63

func readValue(s source) (value, error) {
	b, err := s.next(1)
	if err != nil {
		return value{}, err
	}
	switch c := b[0]; {
	case c < 0x80: // a small number is its own first byte
		return value{n: uint64(c)}, nil
	case c < 0x90: // a small map
		return value{kind: isMap, n: uint64(c & 0x0f)}, nil
	case c >= 0xa0 && c < 0xc0: // a short string
		return readText(s, isString, uint64(c&0x1f), nil)
	case c == 0xc0, c == 0xc2, c == 0xc3: // nil, false, true
		return value{}, nil
	case c >= 0xc4 && c <= 0xc6:
		n, err := unsigned(s, 1<<(c-0xc4))
		return readText(s, isBytes, n, err)
	case c >= 0xcc && c <= 0xcf:
		n, err := unsigned(s, 1<<(c-0xcc))
		return value{n: n}, err
	case c >= 0xd0 && c <= 0xd3: // a signed number
		n, err := unsigned(s, 1<<(c-0xd0))
		if n>>(8<<(c-0xd0)-1) != 0 {
			n = negative
		}
		return value{n: n}, err
	case c >= 0xd9 && c <= 0xdb:
		n, err := unsigned(s, 1<<(c-0xd9))
		return readText(s, isString, n, err)
	case c == 0xde:
		n, err := unsigned(s, 2)
		return value{kind: isMap, n: n}, err
	case c >= 0xe0: // a small negative number
		return value{n: negative}, nil
	}
	return value{}, fmt.Errorf("byte %#x starts no value that an agent sends", b[0])
}

// readText reads a string or bytes of the given length. It fails with err if the length could not be
// read.
func readText(s source, kind valueKind, length uint64, err error) (value, error) {
	if err == nil && length > maxStream {
		err = errShort
	}
	if err != nil {
		return value{}, err
	}
	b, err := s.next(int(length))
	return value{kind: kind, text: string(b)}, err
}

func unsigned(s source, width int) (uint64, error) {
	b, err := s.next(width)
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, nil
}
