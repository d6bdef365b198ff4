//go:build !linux

package runner

import (
	"errors"
	"os"
	"syscall"
)

// adopt does nothing: only Linux has subreapers.
func adopt() error { return nil }

func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

func ownProgram() (string, error) { return os.Executable() }

// children returns none: on this system only the process group can be ended.
func children(int) []int { return nil }

// cgroup does nothing: only Linux has control groups.
type cgroup struct{}

func newCgroup(int) *cgroup                    { return &cgroup{} }
func abandonedCgroup(int) *cgroup              { return &cgroup{} }
func (*cgroup) hold(*syscall.SysProcAttr) bool { return false }
func (*cgroup) kill()                          {}
func (*cgroup) drop()                          {}

// notices are not there: only Linux tells who wrote to a socket.
type notices struct{ name string }

func newNotices() (*notices, error)                      { return nil, errors.New("only Linux has a NOTIFY_SOCKET") }
func (*notices) listen(<-chan struct{}, chan<- *notices) {}
func (*notices) next() ([]byte, sender, bool)            { return nil, sender{}, false }
func (*notices) close()                                  {}
func parentOf(int) (int, bool)                           { return 0, false }

func hurry() (nice int) { return 0 }
func calm(_, _, _ int)  {}
func hasten(_, _ int)   {}
