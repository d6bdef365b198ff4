//go:build !linux

package runner

import (
	"os"
	"syscall"
)

// adopt does nothing: only Linux has subreapers.
func adopt() error { return nil }

func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

func ownProgram() (string, error) { return os.Executable() }

// children is not known here; the process group is what there is to end.
func children(int) []int { return nil }

// cgroup is of Linux.
type cgroup struct{}

func newCgroup(int) *cgroup                    { return &cgroup{} }
func abandonedCgroup(int) *cgroup              { return &cgroup{} }
func (*cgroup) hold(*syscall.SysProcAttr) bool { return false }
func (*cgroup) kill()                          {}
func (*cgroup) drop()                          {}

func hurry() (nice int) { return 0 }
func calm(_, _, _ int)  {}
func hasten(_, _ int)   {}
