package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/memberlist"
)

// A message of memberlist is a byte for its kind, and a map of field names to numbers,
// truths and strings in MessagePack. Memberlist's decoders trust what they receive: an
// announced length, how deep things are nested, how much a compressed message grows. So
// everything is read here first, and only what an agent of this product sends is handed
// on.
const (
	sayPing = iota
	sayIndirectPing
	sayAck
	saySuspect
	sayAlive
	sayDead
	sayState // an exchange of all that is known, in streams
	sayCompound
	sayUser     // no agent sends one
	sayCompress // no agent sends one
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
	// A node's incarnation rises by one each time it refutes an accusation. The bound for
	// accusations is far below that for answers, so that the answer can't overflow.
	maxAccusation  = 1 << 30
	maxIncarnation = 1 << 31
	// versions are what every node of this release sends: the least, the most and the used
	// version of memberlist's protocol, and zeros since no other protocol runs over it. They
	// are not signed, and memberlist refuses a whole exchange if one live node's don't fit all
	// others'. An update to a memberlist with other versions needs a release that takes both.
	versions = "\x01\x05\x02\x00\x00\x00"
)

var (
	errShort    = errors.New("it ends too early")
	errVersions = errors.New("a node uses other versions of the gossip protocol than this release")
)

// source gives the bytes of a message. The slice that next returns is valid until the next
// call.
type source interface {
	next(n int) ([]byte, error)
}

// cursor is a source of bytes that are all there.
type cursor []byte

func (c *cursor) next(n int) ([]byte, error) {
	if n < 0 || len(*c) < n {
		return nil, errShort
	}
	b := (*c)[:n]
	*c = (*c)[n:]
	return b, nil
}

// checkPacket reports why memberlist should not get this packet. Its label and encryption
// are already removed.
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

// checkPart looks at one message of a packet.
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
	if b[0] == sayAlive && !f.versions {
		return errVersions
	}
	if err := f.incarnation(b[0] == saySuspect || b[0] == sayDead); err != nil {
		return err
	}
	if b[0] == sayDead && f.node == f.from {
		left(f.node)
	}
	return nil
}

// checkStream reads one message of a stream, and reports why memberlist should not get it.
// Label and encryption are already removed. An answer is a message on a stream that this
// agent opened.
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

// checkState reads an exchange: a header, and as many nodes as it announces.
func checkState(s source, left func(node string)) error {
	head, err := readFields(s)
	if err != nil {
		return err
	}
	if head.nodes > maxNodes || head.userState != 0 {
		return fmt.Errorf("it announces %d nodes and %d bytes, at most %d and none are allowed", head.nodes, head.userState, maxNodes)
	}
	for range head.nodes {
		f, err := readFields(s)
		if err != nil {
			return err
		}
		if !f.versions {
			return errVersions
		}
		if err := f.incarnation(f.state != 0); err != nil { // 0 is alive
			return err
		}
		if memberlist.NodeStateType(f.state) == memberlist.StateLeft {
			left(f.name)
		}
	}
	return nil
}

// fields are the numbers of a map that must be bounded, whether the map gives the versions of
// this release, and whom it is about.
type fields struct {
	nodes, userState, state, incarnations uint64
	versions                              bool
	name, node, from                      string // of a node in an exchange; of a node that is gone, and who says so
}

func (f fields) incarnation(accuses bool) error {
	if f.incarnations > maxIncarnation || accuses && f.incarnations > maxAccusation {
		return fmt.Errorf("incarnation %d is higher than an agent can reach", f.incarnations)
	}
	return nil
}

// readFields reads a map of strings to numbers, truths and strings.
func readFields(s source) (fields, error) {
	var f fields
	n, err := mapLength(s)
	if err != nil {
		return f, err
	}
	if n > maxFields {
		return f, fmt.Errorf("a message with %d fields", n)
	}
	seen := map[string]bool{}
	for range n {
		key, err := readKey(s)
		if err != nil {
			return f, err
		}
		if seen[key] {
			return f, fmt.Errorf("field %.20q is given twice", key)
		}
		seen[key] = true
		number, text, err := readValue(s)
		if err != nil {
			return f, fmt.Errorf("field %.20q: %w", key, err)
		}
		switch key {
		case "Nodes":
			f.nodes = number
		case "UserStateLen":
			f.userState = number
		case "State":
			f.state = number
		case "Incarnation":
			f.incarnations = number
		case "Vsn":
			f.versions = string(text) == versions
		case "Name":
			f.name = string(text)
		case "Node":
			f.node = string(text)
		case "From":
			f.from = string(text)
		}
	}
	return f, nil
}

func mapLength(s source) (int, error) {
	b, err := s.next(1)
	if err != nil {
		return 0, err
	}
	switch c := b[0]; {
	case c&0xf0 == 0x80:
		return int(c & 0x0f), nil
	case c == 0xde:
		n, err := unsigned(s, 2)
		return int(n), err
	}
	return 0, fmt.Errorf("byte %#x does not start a message", b[0])
}

// maxKey is longer than the name of any field.
const maxKey = 31

func readKey(s source) (string, error) {
	b, err := s.next(1)
	if err != nil {
		return "", err
	}
	n := uint64(b[0] & 0x1f)
	switch {
	case b[0] == 0xd9:
		n, err = unsigned(s, 1)
	case b[0]&0xe0 != 0xa0:
		err = fmt.Errorf("byte %#x does not start a field name", b[0])
	}
	if err == nil && n > maxKey {
		err = fmt.Errorf("a field name of %d bytes", n)
	}
	if err != nil {
		return "", err
	}
	name, err := s.next(int(n))
	return string(name), err
}

// readValue reads a number, a truth, a string, bytes or nothing, and returns the number or
// the string. A negative number becomes one that is larger than every bound.
func readValue(s source) (uint64, []byte, error) {
	b, err := s.next(1)
	if err != nil {
		return 0, nil, err
	}
	var n uint64
	var text []byte
	switch c := b[0]; {
	case c < 0x80: // a small number
		n = uint64(c)
	case c >= 0xe0: // a small negative one
		n = 1 << 63
	case c&0xe0 == 0xa0: // a short string
		text, err = s.next(int(c & 0x1f))
	case c == 0xc0, c == 0xc2, c == 0xc3: // nothing, false, true
	case c >= 0xcc && c <= 0xcf:
		n, err = unsigned(s, 1<<(c-0xcc))
	case c >= 0xd0 && c <= 0xd3:
		n, err = unsigned(s, 1<<(c-0xd0))
		if n>>(8<<(c-0xd0)-1) != 0 {
			n = 1 << 63
		}
	case c >= 0xc4 && c <= 0xc6: // bytes
		text, err = readText(s, 1<<(c-0xc4))
	case c >= 0xd9 && c <= 0xdb: // a string
		text, err = readText(s, 1<<(c-0xd9))
	default:
		err = fmt.Errorf("byte %#x starts neither a number nor a string", c)
	}
	return n, text, err
}

func readText(s source, width int) ([]byte, error) {
	n, err := unsigned(s, width)
	if err != nil {
		return nil, err
	}
	if n > maxStream {
		return nil, errShort
	}
	return s.next(int(n))
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
