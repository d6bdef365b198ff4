//go:build !linux

package hosts

import "syscall"

// childAttributes puts an agent in a process group of its own, so that a
// terminal's Ctrl-C reaches the testbed only. What ties its life to the
// testbed's here is dieWithParent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
