// Package fd asks the system about connections and files, by their descriptors.
package fd

import (
	"cmp"
	"syscall"
)

// Use calls f with the descriptor, which stays open until f returns. The error is f's, or why f was not called.
func Use(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return cmp.Or(err, failed)
}
