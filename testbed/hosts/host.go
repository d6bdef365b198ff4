package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

type Status string

const (
	Down    Status = "down"
	Running Status = "running"
	Frozen  Status = "frozen" // by SIGSTOP
)

var (
	// ErrDown reports that the host has no process.
	ErrDown = errors.New("it is down")
	// ErrUp reports that the host has a process already.
	ErrUp = errors.New("it is up")
)

// Exit is the end of an agent's process.
type Exit struct {
	Host  string
	At    election.Instant // when the testbed noticed it, a few milliseconds late at most
	How   string           // "signal: killed", "exit status 78", "exit status 0"
	Clean bool             // it ended by itself, with status 0
	Said  string           // the last line of its log
}

// Host is one agent's place on this machine, and the agent's process while one runs. Several
// goroutines may call its methods at once.
type Host struct {
	name    string
	config  settings.Config
	dir     string
	program Program
	onExit  func(Exit)
	sandbox *sandbox
	shared  *spawner // the cluster's, for hosts that have no sandbox and no clock of their own

	mu       sync.Mutex
	process  *process      // the agent's newest, nil before the first
	programs []*exec.Cmd   // started by Exec; some may have ended
	spawner  *spawner      // starts new processes, nil before the first one
	spawners []*spawner    // of this host only, the newest last
	rate     float64       // of the clock, for processes from the next start on
	wall     time.Duration // by how much the wall clock is ahead, for the same processes
	clocks   []clock       // all changed clocks so far, the newest last
	closed   bool

	weight sync.Mutex // guards busy and feed, and is taken before mu
	busy   Busy       // processes that compete with the host's
	feed   func()     // ends the starvation; nil: the host is not starved
}

type process struct {
	cmd    *exec.Cmd
	frozen bool
	done   chan struct{} // closed once the process has ended, before onExit is called
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Name is the host's name. Its agent has the same name, unless Config.Adjust changed it.
func (h *Host) Name() string { return h.name }

func (h *Host) Config() settings.Config { return h.config }

// Log is the path of the file to which the agent's processes write stdout and stderr.
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

// PID returns the ID of the agent's process, 0 if there is none.
func (h *Host) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil || h.process.ended() {
		return 0
	}
	return h.process.cmd.Process.Pid
}

// Done is closed once the newest process has ended. Before the first start it is closed too.
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

// Start runs the agent, with the data that its former process left. It returns the instant
// just before the new process was made, or ErrUp if a process runs already.
func (h *Host) Start() (election.Instant, error) {
	at, err := h.start()
	return at, wrap.Error(err, "start %s", h.Name())
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
	thread, err := h.thread()
	if err != nil {
		return 0, err
	}
	at := boottime.Now()
	if err := h.startOn(thread, cmd); err != nil {
		return 0, err
	}
	h.process = &process{cmd: cmd, done: make(chan struct{})}
	go h.await(h.process)
	return at, nil
}

// thread returns the spawner for new processes. If the host's clock was changed, it makes a new one.
func (h *Host) thread() (*spawner, error) {
	old := h.clock()
	fresh := h.rate != 0 && h.rate != cmp.Or(old.rate, 1) || h.wall != old.wall
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
		c = clock{from: now, read: old.at(now), rate: cmp.Or(h.rate, 1), wall: h.wall}
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

// startOn starts a process. Without a vDSO, the process reads a changed wall clock by system calls.
func (h *Host) startOn(thread *spawner, cmd *exec.Cmd) error {
	if h.clock().wall != 0 {
		return thread.do(func() error { return startWithoutVDSO(cmd) })
	}
	return thread.start(cmd)
}

// clock is the newest clock of the host's processes.
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

// Kill ends the process at once (SIGKILL), as a crash does. Like Terminate, Freeze and Thaw,
// it returns the instant just before the signal, or ErrDown if there is no process.
func (h *Host) Kill() (election.Instant, error) { return h.signal("kill", syscall.SIGKILL) }

// Terminate asks the agent to end (SIGTERM), which makes it hand over first. A frozen agent
// ends once it is thawed.
func (h *Host) Terminate() (election.Instant, error) { return h.signal("terminate", syscall.SIGTERM) }

// Freeze stops the process without its knowledge (SIGSTOP), as if a virtual machine were
// paused.
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
	err := h.process.cmd.Process.Signal(s)
	if err == nil && h.config.Keeper && (s == syscall.SIGSTOP || s == syscall.SIGCONT) {
		err = syscall.Kill(-h.process.cmd.Process.Pid, s) // to the whole process group: a keeper and its agent
	}
	if err != nil {
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

// maxSaid bounds how many bytes at the end of a log are read.
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
