package hosts

import (
	"os/exec"
	"syscall"
)

// tie puts a process in a process group of its own, so that a terminal's Ctrl-C reaches only
// the testbed. It also lets the kernel kill the process when the testbed dies.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}
