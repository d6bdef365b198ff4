package hosts

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread, which lives as long as the spawner. When the
// kernel kills a process "when its parent dies", the parent is the thread that started it. The
// Go runtime may end any thread unless a living goroutine is locked to it. Processes inherit
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

// close ends the thread. On Linux, that kills every process it started that still runs.
func (s *spawner) close() {
	close(s.work)
	<-s.ended
}
