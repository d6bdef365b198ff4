package hosts

import (
	"os/exec"
	"syscall"
)

// tie puts a process in a process group of its own, so that a terminal's Ctrl-C
// reaches the testbed only, and ties its life to the testbed's.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}
