package membership

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"
)

// mirror reads memberlist's own list, with the state of each node. Memberlist has no
// call for that: Members omits the state, mixes alive with suspect, and returns pointers
// into what memberlist changes. There is no event of suspicion either. But the exchange by
// which a node joins carries the state. So the mirror is a second, idle memberlist that
// joins the first one in memory, keeps what it receives, and merges nothing. It has left
// before it joins, so the first one has nothing to merge either.
type mirror struct {
	list *memberlist.Memberlist
	wire *wire
	told []sighting // what the exchange under way brought; there is one at a time
}

// sighting is a node as memberlist lists it.
type sighting struct {
	node   string
	addr   netip.AddrPort
	meta   []byte
	status Status
}

var errTold = errors.New("told")

// mirrorName can't be a member's gossip name.
const mirrorName = "#mirror"

// newMirror makes the mirror of the memberlist that uses the given wire and config.
func newMirror(w *wire, of *memberlist.Config) (*mirror, error) {
	m := &mirror{wire: w}
	cfg := memberlist.DefaultLocalConfig()
	cfg.Name = mirrorName
	cfg.Label = of.Label
	cfg.Keyring = of.Keyring
	cfg.TCPTimeout = of.TCPTimeout
	cfg.EnableCompression = false
	cfg.ProbeInterval, cfg.PushPullInterval, cfg.GossipInterval = 0, 0, 0
	cfg.Merge = m
	cfg.Transport = loopTransport{wire: w}
	cfg.Logger = log.New(io.Discard, "", 0)
	list, err := memberlist.Create(cfg)
	if err != nil {
		return nil, fmt.Errorf("start mirror: %w", err)
	}
	m.list = list
	if err := list.Leave(time.Second); err != nil {
		return nil, errors.Join(fmt.Errorf("start mirror: %w", err), list.Shutdown())
	}
	return m, nil
}

// read returns all nodes that memberlist lists, dead ones included for a while.
// It takes some 100 µs and fails only if memberlist does not answer in time.
func (m *mirror) read() ([]sighting, error) {
	m.told = nil
	_, err := m.list.Join([]string{loopAddr})
	if m.told == nil {
		return nil, fmt.Errorf("read memberlist's state: %w", err)
	}
	return m.told, nil
}

// NotifyMerge is called by Join with what the other side sent.
func (m *mirror) NotifyMerge(nodes []*memberlist.Node) error {
	m.told = make([]sighting, 0, len(nodes))
	for _, n := range nodes {
		s := sighting{node: n.Name, addr: nodeAddr(n), meta: n.Meta}
		switch n.State {
		case memberlist.StateAlive:
			s.status = Alive
		case memberlist.StateSuspect:
			s.status = Suspect
		case memberlist.StateLeft:
			s.status = Left
		default:
			s.status = Dead
		}
		m.told = append(m.told, s)
	}
	return errTold
}

func (m *mirror) close() error { return m.list.Shutdown() }

// loopAddr stands for the mirror's address and the one that it joins. Nothing is sent there.
const loopAddr = "127.0.0.1:1"

// loopTransport connects the mirror to the wire it mirrors, and to nothing else.
type loopTransport struct{ wire *wire }

func (t loopTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return net.IPv4(127, 0, 0, 1).To4(), 1, nil
}

func (t loopTransport) WriteTo([]byte, string) (time.Time, error) { return time.Now(), nil }

func (t loopTransport) WriteToAddress([]byte, memberlist.Address) (time.Time, error) {
	return time.Now(), nil
}

func (t loopTransport) DialTimeout(string, time.Duration) (net.Conn, error) { return t.wire.loop() }

func (t loopTransport) DialAddressTimeout(memberlist.Address, time.Duration) (net.Conn, error) {
	return t.wire.loop()
}

func (t loopTransport) PacketCh() <-chan *memberlist.Packet { return nil }
func (t loopTransport) StreamCh() <-chan net.Conn           { return nil }
func (t loopTransport) Shutdown() error                     { return nil }
