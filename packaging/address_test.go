package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var rounds = flag.Int("rounds", 3, "how often the keeper of the leading host is killed")

const address = "10.0.0.100"

// When a keeper is killed, the address of examples/virtual-ip, with the unchanged drop-in, is back within 2 s.
// Each time, a neighbour gets a gratuitous ARP. The address is never on two hosts at once. More rounds: go test
// -run TestTheAddressOfAKilledKeeper -rounds=20 .
func TestTheAddressOfAKilledKeeper(t *testing.T) {
	s := newSite(t)
	n := s.neighbour(t)
	s.agents(t, file(t, ".deb"), "on-change: /usr/local/libexec/doyen/virtual-ip\n", `cd /usr/share/doc/doyen/examples/virtual-ip
		install -D -t /usr/local/libexec/doyen virtual-ip
		install -D -m 0644 -t /etc/systemd/system/doyen.service.d doyen.service.d/virtual-ip.conf
		sed -i s/eth0/host0/ /etc/systemd/system/doyen.service.d/virtual-ip.conf`)
	n.back(t, time.Time{}, time.Minute)
	for range *rounds {
		leads, term := s.leader(t)
		keeper := strings.TrimSpace(leads.must(t, "systemctl show -P MainPID doyen", "^[1-9]"))
		killed := time.Now()
		leads.must(t, "kill -9 "+keeper, "")
		host, announced, answered := n.back(t, killed, 2*time.Second)
		_, now := s.leader(t)
		t.Logf("%s led in term %d; its keeper was killed; %s announced the address in term %d, after %s, and answered after %s",
			leads.name, term, host, now, announced.Sub(killed).Round(time.Millisecond), answered.Sub(killed).Round(time.Millisecond))
	}
	leads, _ := s.leader(t)
	asked := time.Now()
	leads.must(t, "doyen resign", "")
	if host, _, _ := n.back(t, asked, 2*time.Second); host == leads.name {
		t.Errorf("%s has the address, and has handed over", host)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.samples == 0 || n.twice != "" {
		t.Errorf("%d samples; %s", n.samples, n.twice)
	}
}

// neighbour is this machine in the hosts' network, with the announcements that it gets.
type neighbour struct {
	mu        sync.Mutex
	announced []announcement
	samples   int
	twice     string // when two hosts had the address
}

type announcement struct {
	host string
	at   time.Time
}

// neighbour gives this thread's network an address beside the hosts', and watches until the test ends.
func (s *site) neighbour(t *testing.T) *neighbour {
	t.Helper()
	run(t, "ip", "addr", "add", "10.0.0.200/24", "dev", "site")
	bridge, err := net.InterfaceByName("site")
	if err != nil {
		t.Fatal(err)
	}
	arp := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ARP))
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(arp))
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: bridge.Index})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err != nil {
		t.Fatal(err)
	}
	n, done := &neighbour{}, make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { n.listen(socket, s.cards(t), done) })
	ended.Go(func() { n.sample(s.hosts, done) })
	t.Cleanup(func() {
		close(done)
		ended.Wait()
		_ = unix.Close(socket)
	})
	return n
}

// cards returns the names of the hosts by the hardware addresses of their interfaces.
func (s *site) cards(t *testing.T) map[string]string {
	by := map[string]string{}
	for _, h := range s.hosts {
		mac, err := net.ParseMAC(strings.TrimSpace(h.must(t, "cat /sys/class/net/host0/address", ":")))
		if err != nil {
			t.Fatal(err)
		}
		by[string(mac)] = h.name
	}
	return by
}

// listen records each gratuitous ARP for the address: the packet has it as sender and as target.
func (n *neighbour) listen(socket int, hosts map[string]string, done <-chan struct{}) {
	packet, ip := make([]byte, 100), net.ParseIP(address).To4()
	for {
		select {
		case <-done:
			return
		default:
		}
		size, _, err := unix.Recvfrom(socket, packet, 0)
		if err == nil && size >= 28 && bytes.Equal(packet[14:18], ip) && bytes.Equal(packet[24:28], ip) {
			n.mu.Lock()
			n.announced = append(n.announced, announcement{hosts[string(packet[8:14])], time.Now()})
			n.mu.Unlock()
		}
	}
}

// sample checks whether one host after the other has the address. Its thread enters the hosts' networks. If a
// host has the address both before and after another one has it, both have had it at once.
func (n *neighbour) sample(hosts []*host, done <-chan struct{}) {
	runtime.LockOSThread() // the thread ends with this goroutine
	var networks []*os.File
	for _, h := range hosts {
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.init()))
		if err != nil {
			return // without samples, the test fails
		}
		defer network.Close()
		networks = append(networks, network)
	}
	has := func(i int) bool {
		if err := unix.Setns(int(networks[i].Fd()), unix.CLONE_NEWNET); err != nil {
			return false
		}
		card, err := net.InterfaceByName("host0")
		if err != nil {
			return false
		}
		all, err := card.Addrs()
		return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool { return strings.HasPrefix(a.String(), address+"/") })
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for had := -1; ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for i := range hosts {
			if !has(i) {
				continue
			}
			n.mu.Lock()
			n.samples++
			n.mu.Unlock()
			if had >= 0 && had != i && has(had) {
				n.mu.Lock()
				n.twice = fmt.Sprintf("at %s the address was on %s and on %s", time.Now(), hosts[had].name, hosts[i].name)
				n.mu.Unlock()
			}
			had = i
		}
	}
}

// back waits for the address. It returns which host announced it first, when that was, and when the host
// answered. It then waits for that host's second announcement, so that the next round does not count it.
func (n *neighbour) back(t *testing.T, since time.Time, limit time.Duration) (host string, announced, answered time.Time) {
	t.Helper()
	deadline := time.Now().Add(limit)
	seen := func() (of []announcement) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, a := range n.announced {
			if a.at.After(since) {
				of = append(of, a)
			}
		}
		return of
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(seen()) == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("no gratuitous ARP for %s", limit)
		}
		<-tick.C
	}
	first := seen()[0]
	for {
		// The host with the address refuses the connection: no such service runs.
		if _, err := net.DialTimeout("tcp", address+":9", 100*time.Millisecond); errors.Is(err, syscall.ECONNREFUSED) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%s announced the address, and nobody answers for %s: %v", first.host, limit, err)
		}
		<-tick.C
	}
	answered = time.Now()
	for len(seen()) < 2 {
		if time.Since(answered) > 10*time.Second {
			t.Fatalf("%s announced the address only once", first.host)
		}
		<-tick.C
	}
	return first.host, first.at, answered
}
