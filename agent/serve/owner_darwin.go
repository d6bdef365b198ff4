package serve

import "golang.org/x/sys/unix"

func credentials(fd int) (peer, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	p := peer{uid: c.Uid}
	if c.Ngroups > 0 {
		p.gid = c.Groups[0]
	}
	return p, nil
}
