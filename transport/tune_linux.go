package transport

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/fd"
)

// setUserTimeout sets TCP_USER_TIMEOUT (RFC 5482, tcp(7)).
func setUserTimeout(c syscall.Conn, limit time.Duration) error {
	return fd.Use(c, func(d int) error {
		return unix.SetsockoptInt(d, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
