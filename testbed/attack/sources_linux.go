package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// listenAs makes a socket that sends from an address, even if that is not an address of the host.
func listenAs(ctx context.Context, source netip.Addr) (net.PacketConn, error) {
	l := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		}), err)
	}}
	c, err := l.ListenPacket(ctx, "udp4", netip.AddrPortFrom(source, 0).String())
	return c, wrap.Error(err, "send as %s", source)
}

// captureGossip returns what UDP carries to or from that port on this host, the newest last.
// It listens until the context is over or it has maxCaptured packets.
func captureGossip(ctx context.Context, port uint16) ([][]byte, error) {
	const all = unix.ETH_P_IP<<8&0xff00 | unix.ETH_P_IP>>8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
	if err != nil {
		return nil, fmt.Errorf("listen to the network: %w", err)
	}
	file := os.NewFile(uintptr(fd), "packets")
	defer file.Close()
	defer context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Now()) })()
	var packets [][]byte
	buffer := make([]byte, 1<<16)
	for len(packets) < maxCaptured {
		n, err := file.Read(buffer)
		if err != nil {
			if ctx.Err() != nil {
				return packets, nil
			}
			return nil, fmt.Errorf("listen to the network: %w", err)
		}
		if payload, ok := datagram(buffer[:n], port); ok {
			packets = append(packets, append([]byte(nil), payload...))
		}
	}
	return packets, nil
}
