//go:build !linux

package hosts

import (
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/testbed/netns"
)

// sandbox is where a host's processes run. On this system it separates nothing.
type sandbox struct {
	data  string
	space *netns.Host
	disk  bool
}

const onlyLinux = "only on Linux"

func (r *sandbox) plain() bool              { return true }
func (r *sandbox) enter(clock) error        { return nil }
func (r *sandbox) slow(time.Duration) error { return unavailable("slow the disk", onlyLinux) }
func (r *sandbox) otherBoot(string) error   { return unavailable("change the boot", onlyLinux) }
func (r *sandbox) fill() error              { return unavailable("fill the disk", onlyLinux) }
func (r *sandbox) free() error              { return nil }
func (r *sandbox) close() error             { return nil }

// canIntercept returns why system calls can't be intercepted.
func canIntercept() error { return errors.New(onlyLinux) }

func startWithoutVDSO(*exec.Cmd) error { return unavailable("set the wall clock", onlyLinux) }

func lowerPriority([]int) error { return unavailable("crowd", onlyLinux) }

// tie puts a process in a process group of its own, so that a terminal's Ctrl-C reaches only
// the testbed.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
