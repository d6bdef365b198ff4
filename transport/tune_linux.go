package transport

import (
	"cmp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type rawConn interface {
	SyscallConn() (syscall.RawConn, error)
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
