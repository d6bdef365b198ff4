package client

import "syscall"

// listener returns the user of the process that listens at the other end.
func listener(fd int) (uint32, error) {
	c, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return c.Uid, nil
}
