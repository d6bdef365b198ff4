package client

import "syscall"

// listener returns who made the socket at the other end listen.
func listener(fd int) (uint32, error) {
	c, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return c.Uid, nil
}
