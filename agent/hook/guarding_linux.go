package hook

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hold returns a descriptor of the process, -1 if there is none to be had.
func hold(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// there reports whether the process has not been waited for: until then, its number
// belongs to no other process.
func there(pidfd int) bool {
	return pidfd < 0 || unix.PidfdSendSignal(pidfd, 0, nil, 0) != unix.ESRCH
}

func release(pidfd int) {
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
}

// awaitEnd waits until a child has ended, and leaves it to be waited for: until
// then no other process gets its number. It returns false if it can't.
func awaitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
