package hook

import "golang.org/x/sys/unix"

// hold returns a descriptor of the process, -1 if there is none to be had.
func hold(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// there reports whether the process has not been waited for: as long as it has
// not, its number is no other's.
func there(pidfd int) bool {
	return pidfd < 0 || unix.PidfdSendSignal(pidfd, 0, nil, 0) != unix.ESRCH
}

func release(pidfd int) {
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
}
