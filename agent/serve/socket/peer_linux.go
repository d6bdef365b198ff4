package socket

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func credentials(fd int) (Peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{PID: c.Pid}
	p.UID, p.GID = c.Uid, c.Gid
	p.Groups, p.AllGroups = peerGroups(fd)
	return p, nil
}

// peerGroups returns the supplementary groups that the process had when it connected. The user
// database would not suffice: a service or a container may have groups that are not in it. The
// result is false if the kernel does not report the groups (before 4.13).
func peerGroups(fd int) ([]uint32, bool) {
	const size = unsafe.Sizeof(uint32(0))
	groups := make([]uint32, 32)
	for {
		length := uint32(uintptr(len(groups)) * size)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&length)), 0)
		n := int(uintptr(length) / size)
		switch {
		case errno == unix.ERANGE && n > len(groups):
			groups = make([]uint32, n) // the length that the kernel has returned
		case errno != 0:
			return nil, false
		default:
			return groups[:n], true
		}
	}
}
