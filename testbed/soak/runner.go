package soak

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/testbed/hosts"
)

// runner keeps one program running on a host: another process whenever one ends.
type runner struct {
	host     *hosts.Host
	actor    string // path of the executable
	register string

	mu      sync.Mutex
	process *exec.Cmd // nil when none runs
	closed  bool
	ended   chan struct{} // closed when no more processes run
	starts  int
}

func newRunner(h *hosts.Host, actor, register string) *runner {
	return &runner{host: h, actor: actor, register: register, ended: make(chan struct{})}
}

// log is where the program's processes write.
func (r *runner) log() string { return filepath.Join(filepath.Dir(r.host.Log()), "program.log") }

// run runs processes until close.
func (r *runner) run() error {
	defer close(r.ended)
	for {
		cmd, err := r.start()
		if err != nil || cmd == nil {
			return err
		}
		_ = cmd.Wait() // why it ended is in its log
		r.mu.Lock()
		r.process = nil
		r.mu.Unlock()
	}
}

// start makes a process; nil after close.
func (r *runner) start() (*exec.Cmd, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil
	}
	log, err := os.OpenFile(r.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a program: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(r.actor, programArgument, r.host.Config().Socket, r.register, r.host.Name())
	cmd.Stdout, cmd.Stderr = log, log
	if err := r.host.Exec(cmd); err != nil {
		return nil, fmt.Errorf("start a program: %w", err)
	}
	r.process = cmd
	r.starts++
	return cmd, nil
}

// signal sends the process a signal; errNothing if none runs.
func (r *runner) signal(s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return errNothing
	}
	if err := r.process.Process.Signal(s); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return errNothing
		}
		return fmt.Errorf("signal a program: %w", err)
	}
	return nil
}

// close ends the process, and waits for its end.
func (r *runner) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	_ = r.signal(syscall.SIGKILL) // it may be gone
	<-r.ended
}
