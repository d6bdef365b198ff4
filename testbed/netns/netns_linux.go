// Package netns makes hosts of one machine: network namespaces joined by a
// switch, whose links can be cut silently, in both directions or one.
//
// The namespaces have no name and live as long as the process and what it
// started in them, so nothing is left behind however the process ends. It
// needs the right to make network namespaces (root, or CAP_SYS_ADMIN and
// CAP_NET_ADMIN in a user namespace) and nf_tables in the kernel. It does not
// shape links: a cut link loses everything, any other nothing.
package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Network is a switch with hosts.
type Network struct {
	lan   netns.NsHandle // where the switch is
	hosts []*Host
}

// Host is a network namespace with one address on the switch.
type Host struct {
	Addr  netip.Addr
	space netns.NsHandle
	lan   netns.NsHandle // where its port on the switch is
	port  string
	start chan startRequest // to the thread that lives in the namespace
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// New makes a switch and n hosts, 10.77.0.1 and so on, at most 200.
func New(n int) (*Network, error) {
	if n < 1 || n > 200 {
		return nil, fmt.Errorf("make network: %d hosts, want 1 to 200", n)
	}
	lan, _, err := newSpace()
	if err != nil {
		return nil, fmt.Errorf("make network: %w", err)
	}
	network := &Network{lan: lan}
	if err := network.build(n); err != nil {
		return nil, errors.Join(fmt.Errorf("make network: %w", err), network.Close())
	}
	return network, nil
}

func (n *Network) build(hosts int) error {
	lan, err := netlink.NewHandleAt(n.lan)
	if err != nil {
		return fmt.Errorf("enter switch: %w", err)
	}
	defer lan.Close()
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "switch"}}
	if err := errors.Join(lan.LinkAdd(bridge), lan.LinkSetUp(bridge)); err != nil {
		return fmt.Errorf("add switch: %w", err)
	}
	for i := range hosts {
		if err := n.plug(lan, bridge, i+1); err != nil {
			return fmt.Errorf("add host %d: %w", i+1, err)
		}
	}
	return nil
}

// plug adds host i to the switch.
func (n *Network) plug(lan *netlink.Handle, bridge *netlink.Bridge, i int) error {
	space, start, err := newSpace()
	if err != nil {
		return err
	}
	host := &Host{Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), space: space, start: start,
		lan: n.lan, port: fmt.Sprintf("port%d", i)}
	n.hosts = append(n.hosts, host)
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: host.port},
		PeerName: "eth0", PeerNamespace: netlink.NsFd(space)}
	if err := errors.Join(lan.LinkAdd(port), lan.LinkSetMaster(port, bridge), lan.LinkSetUp(port)); err != nil {
		return fmt.Errorf("plug in: %w", err)
	}
	inside, err := netlink.NewHandleAt(space)
	if err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	defer inside.Close()
	eth, err := inside.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	addr, err := netlink.ParseAddr(host.Addr.String() + "/24")
	if err != nil {
		return err
	}
	return errors.Join(inside.AddrAdd(eth, addr), inside.LinkSetUp(eth), inside.LinkSetUp(lo))
}

// Host returns host i, counted from 0.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Close lets go of the namespaces. What still runs in them keeps them.
func (n *Network) Close() error {
	errs := []error{n.lan.Close()}
	for _, h := range n.hosts {
		close(h.start)
		errs = append(errs, h.space.Close())
	}
	return errors.Join(errs...)
}

// Start starts the command on the host.
func (h *Host) Start(cmd *exec.Cmd) error {
	r := startRequest{cmd: cmd, done: make(chan error, 1)}
	h.start <- r
	return <-r.done
}

// newSpace makes a namespace and a thread that stays in it to start processes
// there. The thread outlives every process it starts but at Close: a child with
// a parent-death signal would die with the thread.
func newSpace() (netns.NsHandle, chan startRequest, error) {
	type made struct {
		space netns.NsHandle
		err   error
	}
	ready := make(chan made)
	start := make(chan startRequest)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		space, err := netns.New()
		ready <- made{space, err}
		if err != nil {
			return
		}
		for r := range start {
			r.done <- r.cmd.Start()
		}
	}()
	m := <-ready
	if m.err != nil {
		return 0, nil, fmt.Errorf("make network namespace: %w", m.err)
	}
	return m.space, start, nil
}

// Direction says which packets a cut loses.
type Direction int

const (
	Both Direction = iota
	In             // the host hears nothing
	Out            // nobody hears the host
)

// Cut loses the host's packets where they arrive, so that links stay up and
// no sender is told.
func (h *Host) Cut(d Direction) error {
	var errs []error
	if d != Out {
		errs = append(errs, deafen(h.space, "eth0"))
	}
	if d != In {
		errs = append(errs, deafen(h.lan, h.port))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cut %s: %w", h.Addr, err)
	}
	return nil
}

// Mend undoes the host's cut.
func (h *Host) Mend() error {
	if err := errors.Join(hearAgain(h.space, "eth0"), hearAgain(h.lan, h.port)); err != nil {
		return fmt.Errorf("mend %s: %w", h.Addr, err)
	}
	return nil
}

// deafen drops whatever arrives at the device.
func deafen(space netns.NsHandle, device string) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(space)))
	if err != nil {
		return err
	}
	drop := nftables.ChainPolicyDrop
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: "cut_" + device})
	c.AddChain(&nftables.Chain{Name: "arriving", Table: table, Type: nftables.ChainTypeFilter, Device: device,
		Hooknum: nftables.ChainHookIngress, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	return c.Flush()
}

// hearAgain undoes deafen, if it was done.
func hearAgain(space netns.NsHandle, device string) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(space)))
	if err != nil {
		return err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if t.Name == "cut_"+device {
			c.DelTable(t)
			return c.Flush()
		}
	}
	return nil
}
