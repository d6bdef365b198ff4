package hosts

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// spawner starts processes from one thread, which lives as long as the spawner. The kernel can kill
// a process when its parent dies. For the kernel, the parent is the thread that started the process. The
// Go runtime may end any thread, except one to which a living goroutine is locked. Processes inherit
// the thread's namespaces and system call filters.
type spawner struct {
	work  chan func()
	ended chan struct{}
}

// newSpawner makes a thread and calls enter on it, before the thread starts any process.
func newSpawner(enter func() error) (*spawner, error) {
	s := &spawner{work: make(chan func()), ended: make(chan struct{})}
	entered := make(chan error)
	go func() {
		defer close(s.ended)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		err := enter()
		entered <- err
		if err != nil {
			return
		}
		for do := range s.work {
			do()
		}
	}()
	if err := <-entered; err != nil {
		<-s.ended
		return nil, err
	}
	return s, nil
}

func (s *spawner) do(what func() error) error {
	result := make(chan error, 1)
	s.work <- func() { result <- what() }
	return <-result
}

func (s *spawner) start(cmd *exec.Cmd) error {
	tie(cmd)
	return s.do(cmd.Start)
}

// close ends the thread. On Linux, that kills the processes that it started and that still run.
func (s *spawner) close() {
	close(s.work)
	<-s.ended
}

// ended reports whether a process has ended and was waited for.
func ended(cmd *exec.Cmd) bool {
	return errors.Is(cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Exec starts a program on the host: in the host's namespaces, with its clock and disk. The program has its own process
// group. Its children may outlive the testbed. If Exec succeeds, the caller must Wait for the program.
func (h *Host) Exec(cmd *exec.Cmd) error {
	return wrap.Error(h.exec(cmd), "start %s on %s", cmd.Path, h.Name())
}

func (h *Host) exec(cmd *exec.Cmd) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.New("the testbed is closed")
	}
	thread, err := h.thread()
	if err != nil {
		return err
	}
	h.programs = slices.DeleteFunc(h.programs, ended)
	if err := h.startOn(thread, cmd); err != nil {
		return err
	}
	h.programs = append(h.programs, cmd)
	return nil
}

func (h *Host) pids() (all []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process != nil && !h.process.ended() {
		all = append(all, h.process.cmd.Process.Pid)
	}
	for _, p := range h.programs {
		if !ended(p) {
			all = append(all, p.Process.Pid)
		}
	}
	return all
}

// pulse sends a signal to the process groups of the host's programs, and to its agent's unless
// the agent is frozen.
func (h *Host) pulse(s syscall.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process != nil && !h.process.ended() && !h.process.frozen {
		_ = syscall.Kill(-h.process.cmd.Process.Pid, s) // fails if the process has just ended
	}
	for _, p := range h.programs {
		if !ended(p) {
			_ = syscall.Kill(-p.Process.Pid, s)
		}
	}
}
