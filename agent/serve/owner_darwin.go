package serve

import "golang.org/x/sys/unix"

func credentials(fd int) (peer, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	p := peer{uid: c.Uid, groups: c.Groups[:min(max(int(c.Ngroups), 0), len(c.Groups))]}
	if len(p.groups) > 0 {
		p.gid = p.groups[0]
	}
	return p, nil // a user may have more groups than fit there
}
