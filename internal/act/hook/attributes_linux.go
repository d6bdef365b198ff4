package hook

import "syscall"

// Attributes put a command into a process group of its own. The kernel kills it if this process dies.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
