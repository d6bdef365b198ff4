package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
)

type Status string

const (
	Down    Status = "down"
	Running Status = "running"
	Frozen  Status = "frozen" // by SIGSTOP
)

var (
	// ErrDown says that there is no process to do something to.
	ErrDown = errors.New("it is down")
	// ErrUp says that there is a process already.
	ErrUp = errors.New("it is up")
)

// Exit is the end of an agent's process.
type Exit struct {
	Host  string
	At    election.Instant // when it was noticed, at most milliseconds late
	How   string           // "signal: killed", "exit status 78", "exit status 0"
	Clean bool             // it ended by itself, with status 0
	Said  string           // the last line of its log
}

// Host is one agent's place on this machine, and its process while one runs.
// Its methods may be called by several goroutines at once.
type Host struct {
	name    string
	config  agent.Config
	dir     string
	program Program
	onExit  func(Exit)
	sandbox *sandbox
	shared  *spawner // of all hosts whose processes need nothing of their own

	mu       sync.Mutex
	process  *process    // the newest one, nil before the first
	programs []*exec.Cmd // what Exec started, those that ended included
	spawner  *spawner    // where processes start now, nil before the first
	spawners []*spawner  // this host's own
	rate     float64     // of the clock from the next start on
	clocks   []clock     // that there were, the newest last
	closed   bool

	weight sync.Mutex // guards burden, and is taken before mu
	burden *burden    // nil before the first
}

type process struct {
	cmd    *exec.Cmd
	frozen bool
	done   chan struct{} // closed once it ended and onExit was called
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Name is the host's name, and its agent's unless Config.Adjust changed that.
func (h *Host) Name() string { return h.name }

func (h *Host) Config() agent.Config { return h.config }

// Log is the path of what the agent's processes wrote to stderr.
func (h *Host) Log() string { return filepath.Join(h.dir, "log") }

func (h *Host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.process == nil || h.process.ended():
		return Down
	case h.process.frozen:
		return Frozen
	}
	return Running
}

// PID returns the process's, 0 if there is none.
func (h *Host) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil || h.process.ended() {
		return 0
	}
	return h.process.cmd.Process.Pid
}

// Done is closed once the newest process ended. Before the first start it is
// closed already.
func (h *Host) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return h.process.done
}

// Start runs the agent, with the data that its former process left. It returns the
// instant just before the process was made; ErrUp if one runs.
func (h *Host) Start() (election.Instant, error) {
	at, err := h.start()
	if err == nil {
		if err = h.admit(h.PID()); err != nil {
			_, _ = h.Kill() // it runs without the limits it should have
		}
	}
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", h.Name(), err)
	}
	return at, nil
}

func (h *Host) start() (election.Instant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, errors.New("the testbed is closed")
	}
	if h.process != nil && !h.process.ended() {
		return 0, ErrUp
	}
	cmd, err := h.program.Command(h.config, h.dir)
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(h.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = log, log, h.dir, environment()
	// The end of the testbed closes it, see dieWithParent; so does cmd.Wait.
	if _, err := cmd.StdinPipe(); err != nil {
		return 0, err
	}
	thread, err := h.thread()
	if err != nil {
		return 0, err
	}
	at := boottime.Now()
	if err := thread.start(cmd); err != nil {
		return 0, err
	}
	h.process = &process{cmd: cmd, done: make(chan struct{})}
	go h.await(h.process)
	return at, nil
}

// thread returns where processes start, under the clock that is due.
func (h *Host) thread() (*spawner, error) {
	old := h.clock()
	fresh := h.rate != 0 && h.rate != old.pace()
	switch {
	case h.spawner != nil && !fresh:
		return h.spawner, nil
	case h.sandbox.plain() && !fresh:
		h.spawner = h.shared
		return h.spawner, nil
	}
	c := old
	if fresh {
		now := boottime.Now()
		c = clock{from: now, read: old.at(now), rate: h.rate}
	}
	thread, err := newSpawner(func() error { return h.sandbox.enter(c) })
	if err != nil {
		return nil, err
	}
	if fresh {
		h.clocks = append(h.clocks, c)
	}
	h.spawner, h.spawners = thread, append(h.spawners, thread)
	return thread, nil
}

// clock is what processes that start now go by.
func (h *Host) clock() clock {
	if len(h.clocks) == 0 {
		return clock{}
	}
	return h.clocks[len(h.clocks)-1]
}

func (h *Host) await(p *process) {
	err := p.cmd.Wait()
	exit := Exit{Host: h.Name(), At: boottime.Now(), How: p.cmd.ProcessState.String(), Clean: err == nil, Said: lastLine(h.Log())}
	close(p.done)
	if h.onExit != nil {
		h.onExit(exit)
	}
}

// Kill ends the process at once (SIGKILL), as a crash does. Like the other
// faults it returns the instant just before the signal, and ErrDown if there
// is no process.
func (h *Host) Kill() (election.Instant, error) { return h.signal("kill", syscall.SIGKILL) }

// Terminate asks the process to end (SIGTERM), which hands over first. A frozen
// one ends once it is thawed.
func (h *Host) Terminate() (election.Instant, error) { return h.signal("terminate", syscall.SIGTERM) }

// Freeze stops the process without its knowledge (SIGSTOP), as a paused virtual
// machine is.
func (h *Host) Freeze() (election.Instant, error) { return h.signal("freeze", syscall.SIGSTOP) }

// Thaw lets a frozen process go on (SIGCONT).
func (h *Host) Thaw() (election.Instant, error) { return h.signal("thaw", syscall.SIGCONT) }

func (h *Host) signal(what string, s syscall.Signal) (election.Instant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil || h.process.ended() {
		return 0, fmt.Errorf("%s %s: %w", what, h.Name(), ErrDown)
	}
	at := boottime.Now()
	if err := h.process.cmd.Process.Signal(s); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			err = ErrDown
		}
		return 0, fmt.Errorf("%s %s: %w", what, h.Name(), err)
	}
	switch s {
	case syscall.SIGSTOP:
		h.process.frozen = true
	case syscall.SIGCONT:
		h.process.frozen = false
	}
	return at, nil
}

// maxSaid bounds what is read of the end of a log, in bytes.
const maxSaid = 4096

// lastLine returns the last line of a file, or "".
func lastLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	end := make([]byte, min(info.Size(), maxSaid))
	n, _ := file.ReadAt(end, info.Size()-int64(len(end)))
	lines := strings.Split(strings.TrimSpace(string(end[:n])), "\n")
	return lines[len(lines)-1]
}
