package membership

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// receiveBuffer is how many bytes of datagrams the system should buffer, so that few are lost when many
// agents join at once.
const receiveBuffer = 2 << 20

// bind opens a UDP and a TCP socket on the same port number. If any port will do and the system's choice
// is free for TCP but not for UDP, bind tries another port.
func bind(addr netip.Addr, port int) (*net.UDPConn, *net.TCPListener, error) {
	udp, tcp, err := bindOnce(addr, port)
	for tries := 1; tries < 10 && port == 0 && errors.Is(err, syscall.EADDRINUSE); tries++ {
		udp, tcp, err = bindOnce(addr, port)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = errors.New("the port is in use: stop the other program, or choose another port")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("bind gossip on %s: %w", netip.AddrPortFrom(addr, uint16(port)), err)
	}
	return udp, tcp, nil
}

func bindOnce(addr netip.Addr, port int) (*net.UDPConn, *net.TCPListener, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(port))))
	if err != nil {
		return nil, nil, err
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, boundTo(tcp))))
	if err != nil {
		_ = tcp.Close()
		return nil, nil, err
	}
	_ = udp.SetReadBuffer(receiveBuffer) // the system may allow less: gossip tolerates loss
	return udp, tcp, nil
}

func boundTo(l *net.TCPListener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// receive gives memberlist each packet that passes the guard, in a buffer of the packet's size, until the
// sockets are closed. Memberlist's own transport makes 64 KiB of garbage for each packet, which would be
// most of what an idle agent costs.
func (w *wire) receive() {
	buffer, scratch := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, from, err := w.udp.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 || !w.passes(buffer[:n], from, scratch) {
			continue // an ICMP error caused by an earlier packet, an empty packet, or noise
		}
		packet := &memberlist.Packet{Buf: append([]byte(nil), buffer[:n]...),
			From: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr().Unmap(), from.Port())), Timestamp: time.Now()}
		select {
		case w.packets <- packet:
		case <-w.ctx.Done():
			return
		}
	}
}

// obituary is the start of a datagram by which a keeper of 0.3.0 reports that its agent has ended.
const obituary = "doyen obituary 1\n"

func (w *wire) passes(b []byte, from netip.AddrPort, scratch []byte) bool {
	if bytes.HasPrefix(b, []byte(obituary)) {
		return false // this is not an attack, and this version does not need it
	}
	f := w.guard.packet(b, scratch)
	if f == nil {
		return true
	}
	if host := from.Addr().Unmap(); w.known.Load().worthNaming(f.kind, host) {
		w.suspect(f, netip.AddrPortFrom(host, 0))
	} else {
		w.noise.Add(1)
	}
	return false
}

// WriteTo implements memberlist.Transport: it sends one packet.
func (w *wire) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("send packet: %w", err)
	}
	_, err = w.udp.WriteToUDPAddrPort(b, to)
	return time.Now(), err
}

// PacketCh implements memberlist.Transport: the channel has the packets that passed the guard.
func (w *wire) PacketCh() <-chan *memberlist.Packet { return w.packets }
