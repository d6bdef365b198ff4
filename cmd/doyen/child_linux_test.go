package main

import "syscall"

// withThisProcess has a child killed when this process is.
func withThisProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
