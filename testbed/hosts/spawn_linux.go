package hosts

import "syscall"

// childAttributes puts an agent in a process group of its own, so that a
// terminal's Ctrl-C reaches the testbed only, and ties its life to the
// testbed's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
