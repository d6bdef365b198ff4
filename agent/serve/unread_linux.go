package serve

import (
	"net"

	"golang.org/x/sys/unix"
)

// unread reports whether the other side has not read yet all that was written to it.
func unread(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	waiting := 0
	if err := raw.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil {
		return false
	}
	return err == nil && waiting > 0
}
