package serve

import "golang.org/x/sys/unix"

func credentials(fd int) (peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	return peer{uid: c.Uid, gid: c.Gid, pid: c.Pid}, nil
}
