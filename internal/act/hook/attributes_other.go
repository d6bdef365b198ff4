//go:build !linux

package hook

import "syscall"

// attributes put a check into a process group of its own.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
