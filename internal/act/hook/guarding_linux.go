package hook

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hold returns a descriptor of the process; -1: the kernel gives none.
func hold(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// there reports whether the process has not been reaped yet: until then its number belongs to
// no other process.
func there(pidfd int) bool {
	return pidfd < 0 || unix.PidfdSendSignal(pidfd, 0, nil, 0) != unix.ESRCH
}

func release(pidfd int) {
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
}

// awaitEnd waits until a child has ended, but does not reap it: until it is reaped, no other
// process gets its number. It returns false if it can't wait.
func awaitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
