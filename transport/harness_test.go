package transport

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// patienceOfTests is how long anything may take before a test fails.
const patienceOfTests = 30 * time.Second

// identity is a key and the peer ID it proves.
type identity struct {
	key ed25519.PrivateKey
	id  election.PeerID
}

func identityOf(t testing.TB, seed byte) identity {
	t.Helper()
	key := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
	id, err := PeerIDOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return identity{key, id}
}

// identities returns n identities sorted by peer ID: the first dials all others.
func identities(t testing.TB, n int) []identity {
	t.Helper()
	var all []identity
	for i := range n {
		all = append(all, identityOf(t, byte(i+1)))
	}
	slices.SortFunc(all, func(a, b identity) int { return cmp.Compare(a.id, b.id) })
	return all
}

func helloOf(name string, boot election.LineageID) Hello {
	return Hello{Lineage: boot, Run: election.RunID(boot), Level: Level, Name: name, Cluster: "test", Version: "v0", Algorithm: "bully", Quorum: true, Heartbeat: time.Millisecond, Lease: 1200 * time.Millisecond}
}

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// start returns a running transport that the test's end closes.
func start(t testing.TB, c Config) *Transport {
	t.Helper()
	if !c.Listen.IsValid() {
		// A later life may take the same port, which nobody else must take meanwhile.
		c.Listen = netip.AddrPortFrom(loopback.Addr(), uint16(loopbacks.FreePorts(t, 1)[0]))
	}
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, tr) })
	return tr
}

func closeNow(t testing.TB, tr *Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	if t.Context().Err() != nil { // it is cancelled before cleanups run
		ctx, cancel = context.WithTimeout(context.Background(), patienceOfTests)
	}
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// kill ends a transport the way kill -9 does: no flush, every socket closed.
func kill(tr *Transport) {
	tr.mu.Lock()
	tr.closed = true
	tr.mu.Unlock()
	tr.cancel()
	_ = tr.listener.Close()
	tr.running.Wait()
}

// at is how others reach the transport.
func at(tr *Transport) Peer { return Peer{ID: tr.self, Addr: tr.Addr()} }

// pair returns two connected transports; the first is the one that dials.
func pair(t testing.TB) (a, b *Transport) {
	t.Helper()
	ids := identities(t, 2)
	a = start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b = start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	introduce(t, a, b)
	return a, b
}

func introduce(t testing.TB, a, b *Transport) {
	t.Helper()
	a.SetPeers([]Peer{at(b)})
	b.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	await[Connected](t, b)
}

// await returns the next event, which must be of that type.
func await[E Event](t testing.TB, tr *Transport) E {
	t.Helper()
	select {
	case e := <-tr.Events():
		got, ok := e.(E)
		if !ok {
			var want E
			t.Fatalf("got %T %+v, want %T", e, e, want)
		}
		return got
	case <-time.After(patienceOfTests):
		var want E
		t.Fatalf("no %T came; %+v", want, tr.Stats())
		panic("unreachable")
	}
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patienceOfTests)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			stacks := make([]byte, 1<<20)
			t.Fatalf("not in time: %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func note(i int) election.Message {
	return election.BullyAnswer{Election: "default", Round: uint64(i)}
}

func number(m election.Message) int { return int(m.(election.BullyAnswer).Round) }

// suspect repeats the suspicion until it has had its effect.
func suspect(t testing.TB, tr, of *Transport) {
	t.Helper()
	eventually(t, "the end of the connection", func() bool {
		tr.Suspect(of.self)
		return !tr.Met(of.self)
	})
	if l := await[Lost](t, tr); !errors.Is(l.Err, errSuspected) {
		t.Errorf("lost for %v", l.Err)
	}
}

// exchange sends a message each way and waits for it.
func exchange(t testing.TB, a, b *Transport) {
	t.Helper()
	for _, way := range [][2]*Transport{{a, b}, {b, a}} {
		if !way[0].Send(way[1].self, note(42)) {
			t.Fatalf("not sent; %+v", way[0].Stats())
		}
		if m := await[Message](t, way[1]); m.Peer != way[0].self || number(m.Message) != 42 {
			t.Fatalf("got %+v", m)
		}
	}
}

// cable forwards TCP connections to an address until it is cut: then those it
// carries hang in silence for ever, and new ones are reset.
type cable struct {
	net.Listener
	to  string
	mu  sync.Mutex
	cut chan struct{} // closed when cut
	all []net.Conn
}

func newCable(t testing.TB, to netip.AddrPort) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, to: to.String(), cut: make(chan struct{})}
	go c.serve()
	t.Cleanup(func() {
		_ = l.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, conn := range c.all {
			_ = conn.Close()
		}
	})
	return c
}

func (c *cable) addr() netip.AddrPort { return c.Addr().(*net.TCPAddr).AddrPort() }

func (c *cable) serve() {
	for {
		in, err := c.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.to)
		if err != nil || c.isCut() {
			_ = in.Close()
			continue
		}
		c.mu.Lock()
		c.all = append(c.all, in, out)
		cut := c.cut
		c.mu.Unlock()
		go carry(in, out, cut)
		go carry(out, in, cut)
	}
}

func carry(from, to net.Conn, cut <-chan struct{}) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		select {
		case <-cut: // not even the end gets through
			return
		default:
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			_ = to.Close()
			return
		}
	}
}

func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.cut:
		return true
	default:
		return false
	}
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.cut)
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = make(chan struct{})
}

// drained reads what is left on a connection until its end.
func drained(c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(patienceOfTests))
	_, err := io.Copy(io.Discard, c)
	return err
}

// always returns p.
func (p place) always() place { return p }
