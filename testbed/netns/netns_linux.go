package netns

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Network is a switch with hosts. Several goroutines may call its methods at once, except
// Close, which has to come last.
type Network struct {
	hosts  []*Host
	fabric *fabric
}

// Host is a network namespace. Its interface eth0 has one address on the switch.
type Host struct {
	Addr   netip.Addr
	space  netns.NsHandle
	device *os.File
	index  int
	fabric *fabric
}

// New makes a switch and n hosts, at most MaxHosts, with addresses from 10.77.0.1 on. Random
// faults follow from the seed.
func New(n int, seed uint64) (*Network, error) {
	if n < 1 || n > MaxHosts {
		return nil, fmt.Errorf("make network: %d hosts, want 1 to %d", n, MaxHosts)
	}
	network := &Network{}
	var ports []io.ReadWriteCloser
	var addrs []netip.Addr
	for i := range n {
		h, err := newHost(i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make network: add host %d: %w", i+1, err), network.Close())
		}
		network.hosts = append(network.hosts, h)
		ports, addrs = append(ports, h.device), append(addrs, h.Addr)
	}
	f, err := newFabric(ports, addrs, seed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make network: %w", err), network.Close())
	}
	network.fabric = f
	for _, h := range network.hosts {
		h.fabric = f
	}
	f.run()
	return network, nil
}

// newHost makes a namespace on a thread of its own, which ends once the namespace is made.
func newHost(i int) (*Host, error) {
	h := &Host{Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), index: i}
	built := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		built <- h.build()
	}()
	return h, <-built
}

// build moves the calling thread into a new namespace with an interface.
func (h *Host) build() error {
	space, err := netns.New()
	if err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	h.space = space
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: mtu}, Mode: netlink.TUNTAP_MODE_TUN,
		Flags: netlink.TUNTAP_NO_PI, Queues: 1, NonPersist: true, Owner: uint32(os.Getuid()), Group: uint32(os.Getgid())}
	if err := netlink.LinkAdd(tun); err != nil {
		return errors.Join(fmt.Errorf("open /dev/net/tun: %w", err), space.Close())
	}
	h.device = tun.Fds[0]
	if err := h.configure(tun); err != nil {
		return errors.Join(err, h.device.Close(), space.Close())
	}
	return nil
}

func (h *Host) configure(tun netlink.Link) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	addr, err := netlink.ParseAddr(h.Addr.String() + "/24")
	if err != nil {
		return err
	}
	return wrap.Error(errors.Join(netlink.LinkSetUp(lo), netlink.AddrAdd(tun, addr), netlink.LinkSetUp(tun)), "configure eth0")
}

func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Close ends the switch and closes the namespaces. A namespace ends when nothing runs in it
// any more.
func (n *Network) Close() error {
	var errs []error
	if n.fabric != nil {
		errs = append(errs, n.fabric.close()) // closes the devices too
	}
	for _, h := range n.hosts {
		if n.fabric == nil {
			errs = append(errs, h.device.Close())
		}
		errs = append(errs, h.space.Close())
	}
	return errors.Join(errs...)
}

// SetLink sets what happens to packets from one host to another, from now on.
func (n *Network) SetLink(from, to int, l Link) error {
	err := n.pair(from, to)
	if err == nil {
		err = l.Validate()
	}
	if err != nil {
		return fmt.Errorf("set link: %w", err)
	}
	n.fabric.lanes[from][to].set(l, now())
	return nil
}

func (n *Network) Link(from, to int) Link {
	if n.pair(from, to) != nil {
		return Link{}
	}
	return n.fabric.lanes[from][to].get()
}

func (n *Network) pair(from, to int) error {
	if from == to || min(from, to) < 0 || max(from, to) >= len(n.hosts) {
		return fmt.Errorf("from host %d to host %d: want two of 0 to %d", from, to, len(n.hosts)-1)
	}
	return nil
}

// Enter moves the calling thread into the host's network namespace. The goroutine must stay
// locked to that thread for ever.
func (h *Host) Enter() error {
	return wrap.Error(netns.Set(h.space), "enter %s", h.Addr)
}

// SetCarrier brings the host's interface up, or down as network managers do when the cable is out.
// While the interface is down, packets are lost both ways, and senders on the host get the error
// ENETUNREACH.
func (h *Host) SetCarrier(up bool) error {
	inside, err := netlink.NewHandleAt(h.space)
	if err == nil {
		defer inside.Close()
		var eth netlink.Link
		if eth, err = inside.LinkByName("eth0"); err == nil && up {
			err = inside.LinkSetUp(eth)
		} else if err == nil {
			err = inside.LinkSetDown(eth)
		}
	}
	if err != nil {
		return fmt.Errorf("set carrier of %s: %w", h.Addr, err)
	}
	h.fabric.carrier[h.index].Store(up)
	return nil
}
