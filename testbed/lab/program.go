package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// Program is a program on a host: a candidate in an election, what the host's hook runs, or an attack.
type Program struct {
	Name, Election string // Election is empty for an attack
	Host           *hosts.Host
	Stamps         string // the folder for its stamps

	lab   *Lab
	make  func(*Program) *exec.Cmd // nil if the program is a hook, which doyen act runs
	again bool                     // start it again whenever it has ended
	ended chan struct{}

	// Guarded by the lab's lock.
	cmd    *exec.Cmd
	closed bool
	acts   bool // whether the process acts, as it reported last
	term   uint64
	pid    int // the process that acts
	since  election.Instant
	exit   string   // how the process ended; "" while the process, or a child that holds its output, runs
	output []string // the newest lines
}

type Acting struct {
	Acts  bool
	Term  uint64
	Since election.Instant // the instant of its newest report
	Ended string           // how the process ended; "" while it runs
	Code  int              // its exit status
	Last  string           // the last line of its output
}

const (
	maxOutput = 400
	// leaving is how long processes that a program started may outlive it.
	leaving = 3 * time.Second
)

// ErrNoProcess reports that a program has no process to which a signal could be sent, or can't start one.
var ErrNoProcess = errors.New("it does not run")

// StampsIn is the folder for a program's stamps, in its host's folder.
func StampsIn(dir, name string) string { return filepath.Join(dir, "stamps-"+name) }

// Launch starts a program on a host. If again is true, the lab starts the program again each time
// that it has ended, until the program's End or the lab's Close is called. Without a command the program
// is what the host's hook starts: the lab knows it only by its stamps.
func (l *Lab) Launch(name, election string, h *hosts.Host, again bool, command func(*Program) *exec.Cmd) (*Program, error) {
	p := &Program{Name: name, Election: election, Host: h, lab: l, Stamps: StampsIn(filepath.Dir(h.Log()), name), ended: make(chan struct{}),
		make: command, again: again}
	if err := os.MkdirAll(p.Stamps, 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	var out *os.File
	if command != nil {
		var err error
		if out, err = p.start(); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.programs[name] = p
	l.mu.Unlock()
	if election != "" {
		l.Follow(election)
	}
	go p.run(out)
	return p, nil
}

// start starts a process. What the process and its children write can be read from the file.
func (p *Program) start() (*os.File, error) {
	p.lab.mu.Lock()
	defer p.lab.mu.Unlock()
	if p.closed {
		return nil, ErrNoProcess
	}
	cmd := p.make(p)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = in, in, filepath.Dir(p.Host.Log())
	if err := p.Host.Exec(cmd); err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.cmd, p.exit = cmd, ""
	return out, nil
}

// run listens to the program's processes, one after another, until the last one has ended.
func (p *Program) run(out *os.File) {
	defer close(p.ended)
	for out != nil {
		p.listen(out)
		out = nil
		if p.again {
			out, _ = p.start() // out is nil after Close
		}
	}
}

// listen records what a process and its children write, until the last of them has ended.
func (p *Program) listen(out *os.File) {
	defer out.Close()
	cmd, waited := p.cmd, make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.hear(lines.Text())
	}
	_, _ = io.Copy(io.Discard, out) // if Scan stopped early, at a line that is too long
	<-waited
	p.lab.change(func() {
		p.acts, p.exit, p.since = false, cmd.ProcessState.String(), boottime.Now()
	})
}

func (p *Program) hear(line string) {
	var what string
	var term uint64
	var pid int
	var at int64
	_, err := fmt.Sscanf(line, "@ %s %d %d %d", &what, &term, &pid, &at)
	p.lab.change(func() {
		if len(p.output) == maxOutput {
			p.output = slices.Delete(p.output, 0, maxOutput/4)
		}
		p.output = append(p.output, line)
		if err != nil {
			return
		}
		p.acts, p.term, p.pid, p.since = what == "acting", term, pid, p.Host.Real(election.Instant(at))
	})
}

func (l *Lab) Programs() []*Program {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.programs), func(a, b *Program) int { return strings.Compare(a.Name, b.Name) })
}

func (l *Lab) Program(name string) (*Program, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.programs[name]
	return p, ok
}

// Acting returns what the program does now. A process that has ended does not act, whatever it
// reported before.
func (p *Program) Acting() Acting {
	if p.make == nil {
		s := p.newest()
		return Acting{Acts: s.PID > 0 && Lives(s.PID), Term: s.Term, Since: p.Host.Real(election.Instant(s.First))}
	}
	p.lab.mu.Lock()
	defer p.lab.mu.Unlock()
	a := Acting{Acts: p.exit == "" && p.acts && Lives(p.pid), Term: p.term, Since: p.since, Ended: p.exit}
	if p.exit != "" {
		a.Code = p.cmd.ProcessState.ExitCode()
	}
	if n := len(p.output); n > 0 {
		a.Last = p.output[n-1]
	}
	return a
}

// newest is the newest stamp of a run of the hook.
func (p *Program) newest() (newest stamp.Stamp) {
	all, _ := stamp.Read(p.Stamps)
	for _, s := range all {
		if s.First > newest.First {
			newest = s
		}
	}
	return newest
}

func (p *Program) PID() int {
	p.lab.mu.Lock()
	defer p.lab.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Former returns the exit status of the program's former process, -1 if a signal ended it. ok is false if the program
// had no process before. Only the function that makes the commands may call Former.
func (p *Program) Former() (code int, ok bool) {
	if p.cmd == nil {
		return 0, false
	}
	return p.cmd.ProcessState.ExitCode(), true
}

// Ended returns a channel that is closed when no process of the program is left.
func (p *Program) Ended() <-chan struct{} { return p.ended }

func (p *Program) Crash() (election.Instant, error) { return p.signal("crash", syscall.SIGKILL) }

func (p *Program) Freeze() (election.Instant, error) { return p.signal("freeze", syscall.SIGSTOP) }

func (p *Program) Thaw() (election.Instant, error) { return p.signal("thaw", syscall.SIGCONT) }

func (p *Program) signal(what string, s syscall.Signal) (election.Instant, error) {
	if p.make == nil {
		return 0, fmt.Errorf("%s %s: it is a hook, which ends with its agent: %s %s", what, p.Name, what, p.Host.Name())
	}
	p.lab.mu.Lock()
	at := boottime.Now()
	err := p.cmd.Process.Signal(s)
	p.lab.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return 0, fmt.Errorf("%s %s: %w", what, p.Name, ErrNoProcess)
	case err != nil:
		return 0, fmt.Errorf("%s %s: %w", what, p.Name, err)
	case s == syscall.SIGCONT:
		p.lab.Over(at, p.Name, []string{p.Host.Name()}, "freeze")
	default:
		f := observe.Fault{What: what, Where: []string{p.Host.Name()}, Detail: "program " + p.Name, Program: p.Name, From: at}
		if s == syscall.SIGKILL {
			f.To = at
		}
		p.lab.Note(f)
	}
	return at, nil
}

func (p *Program) End() {
	p.lab.mu.Lock()
	defer p.lab.mu.Unlock()
	p.closed = true
	acts := p.pid // a child of the command, or a run of the hook
	if p.make == nil {
		acts = p.newest().PID
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
	}
	if (p.acts && p.exit == "" || p.make == nil) && acts > 0 && Lives(acts) {
		_ = syscall.Kill(acts, syscall.SIGKILL)
	}
}

// awaitPrograms waits until the programs, and all that they started, have ended.
func (l *Lab) awaitPrograms() error {
	late := time.After(leaving)
	for _, p := range l.Programs() {
		select {
		case <-p.ended:
		case <-late:
			return fmt.Errorf("program %s has left a process behind", p.Name)
		}
	}
	return nil
}

// Lives reports whether a process runs: a zombie does not.
func Lives(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.State != "Z"
}

// Spans reads the stamps of all programs. It returns one span for each process and term.
func (l *Lab) Spans() ([]observe.ProgramSpan, error) {
	var all []observe.ProgramSpan
	for _, p := range l.Programs() {
		stamps, err := stamp.Read(p.Stamps)
		if err != nil {
			return nil, err
		}
		for _, s := range stamps {
			all = append(all, observe.ProgramSpan{Program: p.Name, Host: p.Host.Name(), Election: p.Election, Term: s.Term, PID: s.PID,
				From: p.Host.Real(election.Instant(s.First)), To: p.Host.Real(election.Instant(s.Last))})
		}
	}
	slices.SortStableFunc(all, func(a, b observe.ProgramSpan) int { return int(a.From - b.From) })
	return all, nil
}
