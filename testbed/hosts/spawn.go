package hosts

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that lives as long as it does. The
// kernel's "kill me when my parent dies" means the parent's thread, and the Go
// runtime may end any thread but one that a living goroutine is locked to.
// What a thread has of its own, namespaces and system call filters, its
// processes inherit.
type spawner struct {
	work  chan func()
	ended chan struct{}
}

// newSpawner makes a thread and lets it enter where its processes shall run.
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

// close ends the thread, and with it, on Linux, every process it started that
// still runs.
func (s *spawner) close() {
	close(s.work)
	<-s.ended
}
