package socket

import "golang.org/x/sys/unix"

func credentials(fd int) (Peer, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	var p Peer
	p.UID, p.Groups = c.Uid, c.Groups[:min(max(int(c.Ngroups), 0), len(c.Groups))]
	if len(p.Groups) > 0 {
		p.GID = p.Groups[0]
	}
	return p, nil // AllGroups stays false: the kernel reports only the first groups of a user
}
