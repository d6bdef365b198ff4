package hosts

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that lives as long as it does. The
// kernel's "kill me when my parent dies" means the parent's thread, and the Go
// runtime may end any thread but one that a living goroutine is locked to.
type spawner struct {
	starts chan func()
	ended  chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{starts: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for start := range s.starts {
			start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	result := make(chan error, 1)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread, and with it, on Linux, every process it started that
// still runs.
func (s *spawner) close() {
	close(s.starts)
	<-s.ended
}
