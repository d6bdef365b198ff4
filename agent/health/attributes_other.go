//go:build !linux

package health

import "syscall"

// attributes put a check into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
