package hook

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// guard is a process that outlives this one and then kills the command's run
// that was under way: a killed agent must not leave a command behind that acts
// as the leader's for ever. It reads the run's process group from a pipe that
// the kernel closes with this process.
type guard struct {
	pipe *os.File
	cmd  *exec.Cmd
}

const (
	// guardScript remembers the last line read; an empty one means that no run is
	// under way.
	guardScript = `p=; while read -r l; do p=$l; done; [ -z "$p" ] || kill -9 "-$p"`
	// guardedScript has the run tell the guard of itself before it begins, so that
	// there is no moment at which it is not guarded. The subshell is for a guard
	// that is gone: writing to it kills only that.
	guardedScript = `(echo $$ >&3) 2>/dev/null; exec 3>&-; exec /bin/sh -c "$0"`
)

func startGuard() (*guard, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	defer reader.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what ends this process's group must not end it first
	if err := cmd.Start(); err != nil {
		writer.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &guard{pipe: writer, cmd: cmd}, nil
}

// cover makes a run that is not started yet tell the guard of itself.
func (g *guard) cover(run *exec.Cmd) {
	if g == nil {
		return
	}
	command := run.Args[len(run.Args)-1]
	run.Args = []string{run.Path, "-c", guardedScript, command}
	run.ExtraFiles = []*os.File{g.pipe} // the run's descriptor 3
}

// over tells the guard that the run has ended.
func (g *guard) over() {
	if g != nil {
		_, _ = io.WriteString(g.pipe, "\n") // a guard that is gone kills nobody
	}
}

// close ends the guard. No run is under way.
func (g *guard) close() {
	if g != nil {
		g.pipe.Close()
		_ = g.cmd.Wait() // its outcome means nothing
	}
}
