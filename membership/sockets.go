package membership

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// receiveBuffer is asked of the system, so that a join storm loses little.
	receiveBuffer = 2 << 20
	// acceptPause keeps a failing accept (no file descriptors left) from spinning.
	acceptPause = 50 * time.Millisecond
)

// sockets are a UDP and a TCP socket on the same port number. They replace memberlist's own
// transport, which makes 64 KiB of garbage for each packet: most of what an idle agent would
// cost.
type sockets struct {
	udp     *net.UDPConn
	tcp     *net.TCPListener
	packets chan *memberlist.Packet
	done    chan struct{}
}

// bind opens both. If any port will do, it tries another when one is free for TCP alone.
func bind(addr netip.Addr, port int) (*sockets, error) {
	tries := 1
	if port == 0 {
		tries = 10
	}
	for {
		tries--
		s, err := bindOnce(addr, port)
		if err == nil {
			return s, nil
		}
		inUse := errors.Is(err, syscall.EADDRINUSE)
		if inUse && tries > 0 {
			continue
		}
		at := netip.AddrPortFrom(addr, uint16(port))
		if inUse {
			return nil, fmt.Errorf("bind gossip on %s: the port is in use: stop the other program, or choose another port", at)
		}
		return nil, fmt.Errorf("bind gossip on %s: %w", at, err)
	}
}

func bindOnce(addr netip.Addr, port int) (*sockets, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(port))))
	if err != nil {
		return nil, err
	}
	bound := tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(bound))))
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	_ = udp.SetReadBuffer(receiveBuffer) // the system may allow less: gossip tolerates loss
	return &sockets{udp: udp, tcp: tcp, packets: make(chan *memberlist.Packet), done: make(chan struct{})}, nil
}

// port is the one both sockets are bound to.
func (s *sockets) port() uint16 { return uint16(s.tcp.Addr().(*net.TCPAddr).Port) }

// read gives memberlist each packet for which passes returns true, in a buffer of its size,
// until the sockets are closed.
func (s *sockets) read(passes func(b []byte, from netip.AddrPort) bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 || !passes(buffer[:n], from) {
			continue // an ICMP error of an earlier packet, an empty one, or noise
		}
		packet := &memberlist.Packet{Buf: append([]byte(nil), buffer[:n]...),
			From: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr().Unmap(), from.Port())), Timestamp: time.Now()}
		select {
		case s.packets <- packet:
		case <-s.done:
			return
		}
	}
}

// accept calls take for each inbound stream, until the sockets are closed.
func (s *sockets) accept(take func(net.Conn)) {
	for {
		c, err := s.tcp.Accept()
		switch {
		case err == nil:
			take(c)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-s.done:
				pause.Stop()
				return
			}
		}
	}
}

func (s *sockets) close() error {
	close(s.done)
	return errors.Join(s.udp.Close(), s.tcp.Close())
}

// WriteTo sends one packet, as memberlist.Transport.
func (w *wire) WriteTo(b []byte, addr string) (time.Time, error) {
	return w.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends one packet, as memberlist.NodeAwareTransport.
func (w *wire) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("send packet: %w", err)
	}
	_, err = w.sockets.udp.WriteToUDPAddrPort(b, to)
	return time.Now(), err
}

// PacketCh gives the packets that arrive, as memberlist.Transport.
func (w *wire) PacketCh() <-chan *memberlist.Packet { return w.sockets.packets }
