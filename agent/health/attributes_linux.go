package health

import "syscall"

// attributes put a check into a process group of its own. The kernel kills it if the agent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
