//go:build linux

package netns_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/netns"
)

func newNetwork(t testing.TB, n int) *netns.Network {
	t.Helper()
	needNetworks(t)
	network, err := netns.New(n, *seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return network
}

const port = 7

// socket opens a UDP socket on a host.
func socket(t testing.TB, h *netns.Host) *net.UDPConn {
	t.Helper()
	type opened struct {
		conn *net.UDPConn
		err  error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread() // the thread stays in the namespace and ends
		if err := h.Enter(); err != nil {
			done <- opened{nil, err}
			return
		}
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.Addr, port)))
		done <- opened{conn, err}
	}()
	o := <-done
	if o.err != nil {
		t.Fatal(o.err)
	}
	t.Cleanup(func() { o.conn.Close() })
	return o.conn
}

// echo sends back what arrives, until the socket is closed.
func echo(conn *net.UDPConn) {
	packet := make([]byte, 2000)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		_, _ = conn.WriteToUDPAddrPort(packet[:n], from)
	}
}

// send sends numbered packets of some size.
func send(t testing.TB, from *net.UDPConn, to netip.Addr, first, count, size int) {
	t.Helper()
	packet := make([]byte, size)
	for i := range count {
		binary.BigEndian.PutUint32(packet, uint32(first+i))
		if _, err := from.WriteToUDPAddrPort(packet, netip.AddrPortFrom(to, port)); err != nil {
			t.Fatal(err)
		}
	}
}

// arrives is how long a packet may take that is expected to arrive.
const arrives = 30 * time.Second

// receive returns the numbers of the packets that arrive. It ends with the packet of the last
// number, or when no packet arrives within the time.
func receive(t testing.TB, at *net.UDPConn, last int, quiet time.Duration) (numbers []int) {
	t.Helper()
	packet := make([]byte, 2000)
	for {
		_ = at.SetReadDeadline(time.Now().Add(quiet))
		_, err := at.Read(packet)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return numbers
		}
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, int(binary.BigEndian.Uint32(packet)))
		if last >= 0 && numbers[len(numbers)-1] == last {
			return numbers
		}
	}
}

// roundTrips measures times there and back, and sorts them. Between rounds all threads go to sleep.
// The quickest tenth shows the cost of the switch; slower ones show the machine's load.
func roundTrips(t testing.TB, from *net.UDPConn, to netip.Addr, rounds int, every time.Duration) []time.Duration {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var took []time.Duration
	for i := range rounds {
		<-tick.C
		begun := time.Now()
		send(t, from, to, i, 1, 100)
		if got := receive(t, from, i, arrives); len(got) != 1 {
			t.Fatalf("round %d: got %v back", i, got)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took
}

func TestTheSwitchAddsLessThanAMillisecond(t *testing.T) {
	n := newNetwork(t, 2)
	a, b := socket(t, n.Host(0)), socket(t, n.Host(1))
	go echo(b)
	for _, every := range []time.Duration{time.Microsecond, 3 * time.Millisecond} {
		took := roundTrips(t, a, n.Host(1).Addr, 200, every)
		t.Logf("a round trip every %s: median %s, p99 %s, at most %s", every, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		if undisturbed := took[len(took)/10]; undisturbed > time.Millisecond {
			t.Errorf("a round trip every %s takes %s", every, undisturbed)
		}
	}
}

func TestADelayIsKeptPrecisely(t *testing.T) {
	n := newNetwork(t, 2)
	a, b := socket(t, n.Host(0)), socket(t, n.Host(1))
	go echo(b)
	const delay = 3300 * time.Microsecond
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		if err := n.SetLink(pair[0], pair[1], netns.Link{Delay: delay}); err != nil {
			t.Fatal(err)
		}
	}
	took := roundTrips(t, a, n.Host(1).Addr, 100, time.Microsecond)
	t.Logf("a round trip of 2 × %s: least %s, median %s, at most %s", delay, took[0], took[len(took)/2], took[len(took)-1])
	if took[0] < 2*delay {
		t.Errorf("one was back after %s", took[0])
	}
	if late := took[len(took)/10] - 2*delay; late > time.Millisecond {
		t.Errorf("all but a tenth are %s late", late)
	}
}

func TestACutIsOneWayAndSilent(t *testing.T) {
	n := newNetwork(t, 3)
	a, b, c := socket(t, n.Host(0)), socket(t, n.Host(1)), socket(t, n.Host(2))
	if err := n.SetLink(0, 1, netns.Link{Cut: true}); err != nil {
		t.Fatal(err)
	}
	send(t, a, n.Host(1).Addr, 1, 10, 100) // the sender gets no error
	send(t, a, n.Host(2).Addr, 1, 1, 100)
	send(t, b, n.Host(0).Addr, 1, 1, 100)
	if got := receive(t, c, 1, arrives); len(got) != 1 {
		t.Errorf("another host got %v", got)
	}
	if got := receive(t, a, 1, arrives); len(got) != 1 {
		t.Errorf("the other way came %v", got)
	}
	if err := n.SetLink(0, 1, netns.Link{}); err != nil {
		t.Fatal(err)
	}
	send(t, a, n.Host(1).Addr, 11, 1, 100)
	if got := receive(t, b, 11, arrives); !slices.Equal(got, []int{11}) {
		t.Errorf("after the mend came %v", got)
	}
}

func TestALoudCutIsSeenByTheHost(t *testing.T) {
	n := newNetwork(t, 2)
	a, b := socket(t, n.Host(0)), socket(t, n.Host(1))
	if err := n.Host(0).SetCarrier(false); err != nil {
		t.Fatal(err)
	}
	_, err := a.WriteToUDPAddrPort([]byte("1234"), netip.AddrPortFrom(n.Host(1).Addr, port))
	if !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("a sender is told: %v, want that there is no route", err)
	}
	send(t, b, n.Host(0).Addr, 1, 1, 100)
	if got := receive(t, a, 1, 50*time.Millisecond); len(got) > 0 {
		t.Errorf("an unplugged host got %v", got)
	}
	if err := n.Host(0).SetCarrier(true); err != nil {
		t.Fatal(err)
	}
	send(t, a, n.Host(1).Addr, 2, 1, 100)
	if got := receive(t, b, 2, arrives); !slices.Equal(got, []int{2}) {
		t.Errorf("plugged in again, came %v", got)
	}
}

func TestFiftyHostsAllToAll(t *testing.T) {
	const size, rounds = 50, 4
	n := newNetwork(t, size)
	var sockets []*net.UDPConn
	for i := range size {
		sockets = append(sockets, socket(t, n.Host(i)))
	}
	before, begun := processorTime(t), time.Now()
	for round := range rounds {
		for i, from := range sockets {
			for j := range size {
				if i != j {
					send(t, from, n.Host(j).Addr, round, 1, 100)
				}
			}
		}
		for j, at := range sockets {
			for range size - 1 {
				if got := receive(t, at, round, arrives); len(got) != 1 {
					t.Fatalf("round %d: host %d got %v of the next", round, j, got)
				}
			}
		}
	}
	const packets = rounds * size * (size - 1)
	t.Logf("%d packets in %s, with %s of processor time for each, both ends included", packets,
		time.Since(begun).Round(time.Millisecond), (processorTime(t)-before)/packets)
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
