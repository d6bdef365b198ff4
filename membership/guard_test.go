package membership

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// keyHolder makes messages by hand, as somebody could who has the cluster key.
type keyHolder struct {
	t testing.TB
	a *agent
}

func (k keyHolder) seal(version byte, plain, data []byte) []byte {
	block, err := aes.NewCipher(k.a.cfg.Key)
	if err != nil {
		k.t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		k.t.Fatal(err)
	}
	nonce := bytes.Repeat([]byte{7}, 12)
	return gcm.Seal(append([]byte{version}, nonce...), nonce, plain, data)
}

// packet sends a datagram.
func (k keyHolder) packet(version byte, plain []byte) {
	label := []byte(k.a.cfg.Cluster)
	k.datagram(append(append([]byte{labelled, byte(len(label))}, label...), k.seal(version, plain, label)...))
}

func (k keyHolder) datagram(b []byte) {
	c, err := net.Dial("udp", k.a.Addr().String())
	if err != nil {
		k.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		k.t.Fatal(err)
	}
}

// stream sends a message in a stream, and returns all that is answered.
func (k keyHolder) stream(version byte, plain []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{saySealed}, uint32(sealOverhead+len(plain)))
	return k.raw(append(head, k.seal(version, plain, append(bytes.Clone(head), k.a.cfg.Cluster...))...))
}

func (k keyHolder) raw(b []byte) []byte {
	c, err := net.Dial("tcp", k.a.Addr().String())
	if err != nil {
		k.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	label := k.a.cfg.Cluster
	if _, err := c.Write(append(append([]byte{labelled, byte(len(label))}, label...), b...)); err != nil {
		k.t.Fatal(err)
	}
	answer, _ := io.ReadAll(c)
	return answer
}

// field and message write MessagePack by hand.
func field(name string, value ...byte) []byte {
	return append(append([]byte{0xa0 | byte(len(name))}, name...), value...)
}

func message(kind byte, fields ...[]byte) []byte {
	return append([]byte{kind, 0x80 | byte(len(fields))}, bytes.Join(fields, nil)...)
}

// announcement says that an agent at the address is live.
func announcement(node string, meta []byte, addr netip.AddrPort, versions ...byte) []byte {
	return message(sayAlive, field("Incarnation", 1),
		field("Node", append([]byte{0xd9, byte(len(node))}, node...)...),
		field("Addr", append([]byte{0xa4}, addr.Addr().AsSlice()...)...),
		field("Port", 0xcd, byte(addr.Port()>>8), byte(addr.Port())),
		field("Meta", append([]byte{0xda, byte(len(meta) >> 8), byte(len(meta))}, meta...)...),
		field("Vsn", append([]byte{0xa0 | byte(len(versions))}, versions...)...))
}

// deadly are messages at which memberlist panics, takes memory without bound, is
// stuck, or refuses what others say.
func deadly() map[string][]byte {
	nested := append([]byte{sayPing}, bytes.Repeat([]byte{0x91}, 60_000)...)
	return map[string][]byte{
		"a compressed message":                message(sayCompress, field("Algo", 0), field("Buf", 0xa1, 0)),
		"a message for users":                 append([]byte{sayUser}, "text"...),
		"an exchange of a million nodes":      message(sayState, field("Nodes", 0xce, 0, 16, 0, 0), field("UserStateLen", 0), field("Join", 0xc2)),
		"an exchange with much beside":        message(sayState, field("Nodes", 0), field("UserStateLen", 0xce, 1, 64, 0, 0), field("Join", 0xc2)),
		"an exchange that is not whole":       message(sayState, field("Nodes", 3), field("UserStateLen", 0), field("Join", 0xc2)),
		"nesting without end":                 nested,
		"a string longer than all there is":   message(sayPing, field("Node", 0xdb, 0xff, 0xff, 0xff, 0xff)),
		"a field in a field":                  message(sayAlive, field("Meta", 0x81, 0xa1, 'x', 1)),
		"an extension":                        message(sayPing, field("Node", 0xd4, 1, 1)),
		"an incarnation that can't be topped": message(saySuspect, field("Incarnation", 0xce, 0xff, 0xff, 0xff, 0xff), field("Node", 0xa1, 'x')),
		"a packet in a packet":                {sayCompound, 1, 0, 2, sayCompound, 0},
		"nothing":                             {},
		"an unknown kind":                     {99, 0x80},
		"versions that fit nobody":            message(sayAlive, field("Vsn", 0xa6, 1, 1, 1, 0, 0, 0)),
		"no versions":                         message(sayAlive, field("Node", 0xa1, 'x')),
		"an exchange with such a node": append(message(sayState, field("Nodes", 1), field("UserStateLen", 0), field("Join", 0xc3)),
			message(0, field("Name", 0xa1, 'x'), field("State", 2), field("Vsn", 0xa6, 1, 5, 3, 0, 0, 0))[1:]...),
	}
}

// A message that would end memberlist does not pass the guard, in a packet or in a stream. Nor does a
// message of the encryption version that trusts a byte of the sender.
func TestTheGuardLetsNothingDeadlyThrough(t *testing.T) {
	const name = "test"
	g := &guard{label: name, left: func(string) {}}
	key := testConfig(1).Key
	if err := g.setKeys([][]byte{key}); err != nil {
		t.Fatal(err)
	}
	k := keyHolder{t, &agent{Membership: &Membership{cfg: Config{Key: key}}}}
	label := append([]byte{labelled, byte(len(name))}, name...)
	packet := func(version byte, m []byte) *fault {
		return g.packet(append(bytes.Clone(label), k.seal(version, m, []byte(name))...), nil)
	}
	ping := message(sayPing, field("SeqNo", 1), field("Node", 0xa1, 'x'))
	if f := packet(sealVersion, ping); f != nil {
		t.Errorf("a ping does not pass: %v", f)
	}
	for version := range byte(4) {
		if f := packet(version, ping); version != sealVersion && (f == nil || f.kind != faultKey) {
			t.Errorf("a ping of encryption version %d: %v", version, f)
		}
	}
	for name, m := range deadly() {
		if f := packet(sealVersion, m); f == nil || f.kind != faultMessage && len(m) > 0 {
			t.Errorf("%s, in a packet: %v", name, f)
		}
	}
}

// Anybody can write any address on a datagram, so a datagram accuses nobody.
func TestADatagramOfNobodyAccusesNobody(t *testing.T) {
	member, sought, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	known := &acquaintances{members: map[netip.Addr]bool{member: true}, sought: map[netip.Addr]bool{sought: true}}
	for kind := faultNoise; kind <= faultIncomplete; kind++ {
		for host, want := range map[netip.Addr]bool{sought: true, member: kind == faultMessage, other: false} {
			if got := known.worthNaming(kind, host); got != want {
				t.Errorf("%q from %s: it is named: %t, want %t", kind, host, got, want)
			}
		}
	}
}

// TestNoMessageOfAKeyHolderEndsAnAgent sends messages that once ended or harmed an agent. Each is
// dropped, and together they make one refusal.
func TestNoMessageOfAKeyHolderEndsAnAgent(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	label := []byte{labelled, 4, 't', 'e', 's', 't'}
	for name, m := range deadly() {
		if f := a.wire.guard.packet(append(bytes.Clone(label), k.seal(1, m, label[2:])...), nil); f == nil || f.kind != faultMessage && len(m) > 0 {
			t.Errorf("%s, in a packet: %v", name, f)
		}
		k.packet(1, m)
		if answer := k.stream(1, m); len(answer) != 0 {
			t.Errorf("%s: answered by %d bytes", name, len(answer))
		}
	}
	// Padding that is longer than a block, or than the message.
	for _, padding := range []byte{17, 239, 255} {
		for _, m := range [][]byte{append(make([]byte, 15), padding), message(sayPing, field("SourceNode", 0xa0), field("SeqNo", 0xcc, padding))} {
			k.packet(0, m)
			k.stream(0, m)
		}
	}
	for n := range minSealed { // too short to be anything
		k.datagram(append(bytes.Clone(label), make([]byte, n)...))
		k.datagram(append(bytes.Clone(label), bytes.Repeat([]byte{1}, n)...))
	}
	for _, size := range []uint32{0, 1, minSealed - 1, maxStream + 1, 20 << 20, 1 << 31} {
		k.raw(binary.BigEndian.AppendUint32([]byte{saySealed}, size))
	}
	r := a.refuses(CauseMessage)
	wantText(t, r.Err, "127.0.0.1 has the cluster key", "same release")
	startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
}

// TestVersionsThatFitNobodyKeepNobodyOut: what a node says of memberlist's protocol is not signed, and
// memberlist fails every exchange while it lists a live node whose versions don't fit all others.
func TestVersionsThatFitNobodyKeepNobodyOut(t *testing.T) {
	t.Parallel()
	gone := start(t, testConfig(9))
	node, meta, addr := gone.del.self, *gone.del.meta.Load(), gone.Addr()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	a.sees("agent-1", "agent-2") // what is wrong is named if it came from a member's address
	keyHolder{t, a}.packet(1, announcement(node, meta, addr, 1, 1, 1, 0, 0, 0))
	wantText(t, a.refuses(CauseMessage).Err, "127.0.0.1 has the cluster key", "other versions", "same release")
	for _, x := range []*agent{a, b, startJoined(t, 3, a)} {
		x.sees("agent-1", "agent-2", "agent-3")
	}
	d := newDelegate(gone.del.notary, "own#1") // not an agent's own: memberlist calls that under its lock, also after a Close
	for i, said := range []string{versions, "\x01\x01\x01\x00\x00\x00", "\x01\x05\x02\x00\x01\x01"} {
		err := d.NotifyAlive(&memberlist.Node{Name: node, Meta: meta, PMin: said[0], PMax: said[1], PCur: said[2], DMin: said[3], DMax: said[4], DCur: said[5]})
		if (err == nil) != (i == 0) {
			t.Errorf("memberlist may list a node of versions %v: %v", []byte(said), err)
		}
	}
}

func TestAHugeExchangeTakesNoMemory(t *testing.T) {
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	m := deadly()["an exchange of a million nodes"]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		k.stream(1, m)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("20 messages of %d bytes made it take %d MiB", len(m), took>>20)
	}
}

// Whatever memberlist itself says passes: ordinary gossip, in packets and in
// streams, with and without a key.
func TestWhatAgentsSayPassesTheGuard(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"with a key": testConfig(1).Key, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(1)
			cfg.Key = key
			a := start(t, cfg)
			var others []*agent
			for n := uint64(2); n < 6; n++ {
				cfg := testConfig(n)
				cfg.Key, cfg.Join = key, addrsOf(a)
				others = append(others, start(t, cfg))
			}
			a.sees("agent-1", "agent-2", "agent-3", "agent-4", "agent-5")
			if err := errors.Join(others[3].Close(), others[2].Leave(t.Context())); err != nil {
				t.Fatal(err)
			}
			a.departs("agent-5", Dead)
			a.departs("agent-4", Left)
			for _, x := range []*agent{a, others[0], others[1]} {
				if n := x.wire.noise.Load(); n != 0 {
					t.Errorf("%s took %d packets for noise", x.self.Name, n)
				}
				for _, r := range x.view.Refused {
					t.Errorf("%s refuses: %v", x.self.Name, r.Err)
				}
			}
		})
	}
}

// The guard lets 1,024 members pass in one exchange with a node that the agent does not know.
func TestTheStateOfTheLargestClusterPasses(t *testing.T) {
	var state bytes.Buffer
	state.Write(message(sayState, field("Nodes", 0xcd, maxMembers>>8, maxMembers&0xff), field("UserStateLen", 0), field("Join", 0xc3)))
	meta := append([]byte{0xda, 2, 0}, make([]byte, memberlist.MetaMaxSize)...)
	for i := range maxMembers {
		name := fmt.Sprintf("%058d#%016x", i, i)
		state.Write(message(0, field("Name", append([]byte{0xd9, byte(len(name))}, name...)...), field("Addr", append([]byte{0xb0}, make([]byte, 16)...)...),
			field("Port", 0xcd, 0x1f, 0x0a), field("Meta", meta...), field("Incarnation", 1), field("State", 0), field("Vsn", 0xa6, 1, 5, 2, 0, 0, 0))[1:])
	}
	if state.Len() > 1<<20 {
		t.Errorf("it takes %d bytes, more than a MiB", state.Len())
	}
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	if answer := k.stream(1, state.Bytes()); len(answer) == 0 {
		t.Error("the exchange was not answered")
	}
}

func TestAWrongKeyIsAnsweredInPlainTextAndNothingElseIs(t *testing.T) {
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	good := a.cfg.Key
	a.cfg.Key = bytes.Repeat([]byte{9}, KeySize)
	answer := k.stream(1, message(sayPing))
	a.cfg.Key = good
	if want := refuse(faultKey); !bytes.Equal(answer, want) {
		t.Errorf("another key is answered by %q, want %q", answer, want)
	}
	for name, m := range map[string][]byte{
		"a message without a key": message(sayPing), "junk": []byte(strings.Repeat("junk", 10)),
	} {
		if answer, want := k.raw(m), refuse(faultNoKey); !bytes.Equal(answer, want) {
			t.Errorf("%s is answered by %q, want %q", name, answer, want)
		}
	}
	c, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	if answer, _ := io.ReadAll(c); len(answer) != 0 {
		t.Errorf("a stranger is answered by %q", answer)
	}
}

// 400 datagrams from anywhere make one refusal that names nobody, and an agent
// with another key that connects is still named.
func TestSpoofedDatagramsNameNobody(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	label := append([]byte{labelled, 4}, "test"...)
	other := append([]byte{labelled, 7}, "staging"...)
	for i := range 400 {
		junk := bytes.Repeat([]byte{byte(i)}, 60)
		switch i % 3 {
		case 0:
			junk = append(bytes.Clone(label), junk...)
		case 1:
			junk = append(bytes.Clone(other), junk...)
		}
		k.datagram(junk)
	}
	r := a.refuses(CauseNoise)
	wantText(t, r.Err, "datagrams", "no agent of this cluster sent")
	if r.Addr.IsValid() || r.Name != "" {
		t.Errorf("it names %q at %s", r.Name, r.Addr)
	}
	v := a.until("the refusal in a view", func(v View) bool { return len(v.Refused) > 0 })
	if len(v.Refused) != 1 {
		t.Errorf("%d refusals: %+v", len(v.Refused), v.Refused)
	}
	cfg := testConfig(2)
	cfg.Key, cfg.Join = bytes.Repeat([]byte{9}, KeySize), addrsOf(a)
	start(t, cfg)
	wantText(t, a.refuses(CauseClusterKey).Err, "cluster key differs", "127.0.0.1")
}

func FuzzTheGuardLetsNothingPassThatEndsMemberlist(f *testing.F) {
	cfg := testConfig(1)
	cfg.Key = nil // so that what is mutated is the message
	m, err := New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = m.Close() })
	for _, b := range deadly() {
		f.Add(b)
	}
	f.Add(message(sayPing, field("SeqNo", 1), field("Node", 0xa0)))
	f.Add(message(sayState, field("Nodes", 0), field("UserStateLen", 0), field("Join", 0xc2)))
	f.Add([]byte{sayCompound, 1, 0, 2, sayNack, 0x80})
	from := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		full := append(append([]byte{labelled, 4}, "test"...), b...)
		if m.wire.guard.packet(full, nil) == nil {
			m.wire.packets <- &memberlist.Packet{Buf: full, From: from, Timestamp: time.Now()}
		}
		p := m.wire.admission.opened()
		defer p.leave(false)
		whole, fault := m.wire.guard.inbound(bytes.NewReader(full), p)
		if fault != nil {
			return
		}
		if !bytes.HasPrefix(full, whole) {
			t.Fatalf("%x came out of %x", whole, full)
		}
		near, far := net.Pipe()
		s := m.wire.track(near, m.wire.admission.opened())
		s.head, s.whole = whole, true
		m.wire.hand(s)
		_ = far.SetDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, far); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("memberlist is stuck")
		}
	})
}
