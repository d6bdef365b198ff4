package socket

import (
	"errors"
	"fmt"
	"net"

	"github.com/doyen-election/doyen/agent/access"
)

// Peer is who is at the other end of a Unix socket, as the kernel reports.
type Peer struct {
	access.Who
	PID int32 // 0: the system does not report it
}

// PeerOf asks the kernel who is at the other end.
func PeerOf(c net.Conn) (Peer, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, errors.New("identify the process at the other end: not a Unix socket")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("identify the process at the other end: %w", err)
	}
	var p Peer
	var asked error
	if err := raw.Control(func(fd uintptr) { p, asked = credentials(int(fd)) }); err != nil {
		return Peer{}, fmt.Errorf("identify the process at the other end: %w", err)
	}
	if asked != nil {
		return Peer{}, fmt.Errorf("identify the process at the other end: %w", asked)
	}
	return p, nil
}
