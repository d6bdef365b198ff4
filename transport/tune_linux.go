package transport

import (
	"cmp"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type rawConn interface {
	SyscallConn() (syscall.RawConn, error)
}

// hungUp reports whether the other side has closed the connection. What it sent before that
// may still be unread.
func hungUp(c net.Conn) (gone bool) {
	tcp, ok := c.(rawConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(ask, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

// setUserTimeout sets TCP_USER_TIMEOUT (RFC 5482, tcp(7)).
func setUserTimeout(c rawConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	return cmp.Or(err, failed)
}
