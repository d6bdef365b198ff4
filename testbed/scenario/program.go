package scenario

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// program is a process of a script's that stands for election on a host, or
// attacks one.
type program struct {
	name, election string // of an attack the election is empty
	host           *hosts.Host
	cmd            *exec.Cmd // nil: the agent runs it, as its hook
	said           *os.File  // of a hook, its other end is what runs write to
	stamps         string    // path
	ended          chan struct{}

	// Guarded by the watcher.
	acts   bool // by its own word
	term   uint64
	pid    int // of the process that acts
	since  election.Instant
	gone   bool // the process and all that held its output ended
	exit   string
	output []string // the newest lines
}

const maxOutput = 400

// programCommand: program NAME HOST ELECTION [priority=N].
func programCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) < 3 {
		return "", errors.New("want a name, a host and an election")
	}
	priority := "-"
	for _, word := range args[3:] {
		key, value, err := pair(word)
		if err != nil || key != "priority" {
			return "", fmt.Errorf("%q: only priority=N can be set", word)
		}
		priority = value
	}
	return "", w.launch(args[0], args[1], args[2], func(p *program) *exec.Cmd {
		return exec.Command(w.o.Actor, campaignArgument, p.host.Config().Socket, p.election, priority, p.stamps)
	})
}

// runCommand: run NAME HOST ELECTION [by-a-child] [FLAG…], `doyen run` with a
// command that acts as long as it lives, or has a child of its own act.
func runCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) < 3 {
		return "", errors.New("want a name, a host, an election, and flags of doyen run if you like")
	}
	role, flags := actArgument, args[3:]
	if len(flags) > 0 && flags[0] == "by-a-child" {
		role, flags = parentArgument, flags[1:]
	}
	return "", w.launch(args[0], args[1], args[2], func(p *program) *exec.Cmd {
		all := slices.Concat([]string{"run", "--socket", p.host.Config().Socket}, flags,
			[]string{p.election, "--", w.o.Actor, role, p.stamps})
		return exec.Command(w.o.Binary.Path, all...)
	})
}

func (w *world) launch(name, host, election string, command func(*program) *exec.Cmd) error {
	if _, taken := w.programs[name]; taken || slices.Contains(w.config.Names(), name) {
		return fmt.Errorf("the name %q is taken", name)
	}
	h, err := w.oneHost(host)
	if err != nil {
		return err
	}
	dir := filepath.Dir(h.Log())
	p := &program{name: name, election: election, host: h, stamps: stampsIn(dir, name), ended: make(chan struct{})}
	p.cmd = command(p)
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.cmd.Dir = dir
	err = h.Exec(p.cmd)
	in.Close()
	if err != nil {
		out.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	w.programs[name] = p
	w.acted = boottime.Now()
	if election != "" {
		w.watcher.follow(election)
	}
	go p.listen(w.watcher, out)
	return nil
}

// listen takes down what the program and its children say, until the last of
// them ended.
func (p *program) listen(w *watcher, out *os.File) {
	defer close(p.ended)
	defer out.Close()
	waited := make(chan error, 1)
	go func() { waited <- p.cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.hear(w, lines.Text())
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	<-waited
	w.tell(func() {
		p.acts, p.gone, p.exit, p.since = false, true, p.cmd.ProcessState.String(), boottime.Now()
		w.note(p.since, "program %s: it ended, %s", p.name, p.exit)
	})
}

func (p *program) hear(w *watcher, line string) {
	var what string
	var term uint64
	var pid int
	var at int64
	_, err := fmt.Sscanf(line, "@ %s %d %d %d", &what, &term, &pid, &at)
	w.tell(func() {
		if len(p.output) == maxOutput {
			p.output = slices.Delete(p.output, 0, maxOutput/4)
		}
		p.output = append(p.output, line)
		if err != nil {
			return
		}
		p.acts, p.term, p.pid, p.since = what == "acting", term, pid, p.host.Real(election.Instant(at))
		w.note(p.since, "program %s on %s: %s, term %d", p.name, p.host.Name(), what, term)
	})
}

// transcript returns the newest lines of what it and its children wrote.
func (p *program) transcript(w *watcher) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(p.output, "\n") + "\n"
}

func (w *world) programNamed(words []string) (*program, bool) {
	if len(words) != 1 {
		return nil, false
	}
	p, ok := w.programs[words[0]]
	return p, ok
}

func (p *program) signal(w *world, what string, s syscall.Signal) error {
	if p.cmd == nil {
		return fmt.Errorf("%s %s: it is a hook, which ends with its agent: %s %s", what, p.name, what, p.host.Name())
	}
	at := boottime.Now()
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s %s: %w", what, p.name, err)
	}
	w.struck(at, what, []string{p.host.Name()}, nil, "program "+p.name)
	return nil
}

// killWithGuard kills a `doyen run` and its guard, so that neither has the time to
// act on the other's end: one that is stopped does nothing. By then the kernel
// has killed the command.
func (p *program) killWithGuard(w *world) error {
	guard, err := childOf(p.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("find the guard of %s: %w", p.name, err)
	}
	command, err := childOf(guard)
	if err != nil {
		return fmt.Errorf("find the command of %s: %w", p.name, err)
	}
	if err := p.signal(w, "freeze", syscall.SIGSTOP); err != nil {
		return err
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		return fmt.Errorf("crash the guard of %s: %w", p.name, err)
	}
	for deadline := time.Now().Add(time.Second); lives(command) && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	return p.kill(w)
}

// childOf returns the only child of a process.
func childOf(parent int) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PPID == parent {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("process %d has no child", parent)
}

// lives reports whether a process runs: a zombie does not.
func lives(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.State != "Z"
}

func (p *program) kill(w *world) error   { return p.signal(w, "crash", syscall.SIGKILL) }
func (p *program) freeze(w *world) error { return p.signal(w, "freeze", syscall.SIGSTOP) }
func (p *program) thaw(w *world) error   { return p.signal(w, "thaw", syscall.SIGCONT) }

// end ends the program, and what acts for it.
func (p *program) end(w *world) {
	if p.cmd == nil {
		_ = p.said.Close()
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
	}
	w.watcher.mu.Lock()
	defer w.watcher.mu.Unlock()
	if p.acts && !p.gone && p.pid > 0 && lives(p.pid) { // the child of a command that was killed, or a hook's run that nobody ended
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// acting reads the conditions about programs: acting P, one-acting among P…,
// not-acting P…, ended P….
func (w *world) acting(name string, words []string) (condition, error) {
	if len(words) > 0 && (words[0] == "among" || words[0] == "on") {
		words = words[1:]
	}
	var all []*program
	for _, word := range words {
		p, ok := w.programs[word]
		if !ok {
			return condition{}, fmt.Errorf("there is no program %q", word)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return condition{}, errors.New("no program is named")
	}
	if name == "not-acting" { // nobody tells of the end of a command that is killed
		return condition{asks: true, judge: func() verdict {
			w.watcher.mu.Lock()
			defer w.watcher.mu.Unlock()
			c := census(all)
			return verdict{holds: c.acting == 0, saw: c.saw}
		}}, nil
	}
	return condition{judge: func() verdict {
		c := census(all)
		wanted := map[string]bool{"acting": c.acting == len(all), "one-acting": c.acting == 1, "ended": c.ended == len(all)}
		return verdict{wanted[name], c.since, c.saw}
	}}, nil
}

// counted is what programs do.
type counted struct {
	acting, ended int
	since         election.Instant // of the newest that they said
	saw           string
}

// census is taken with the watcher's lock held.
func census(all []*program) counted {
	var c counted
	var told []string
	for _, p := range all {
		word := "does not act"
		switch {
		case p.gone:
			word = "ended, " + p.exit
			if p.election == "" && p.cmd.ProcessState.ExitCode() > 0 {
				word = "failed, " + p.exit // an attack that could not be carried out shows nothing
			} else {
				c.ended++
			}
			if len(p.output) > 0 {
				word += ": " + p.output[len(p.output)-1]
			}
		case p.acts && lives(p.pid):
			c.acting++
			word = "acts under term " + strconv.FormatUint(p.term, 10)
		}
		c.since = max(c.since, p.since)
		told = append(told, p.name+" "+word)
	}
	c.saw = strings.Join(told, "; ")
	return c
}

// stamps reads what all programs noted: a stretch for each process and term.
func (w *world) stamps() ([]observe.ProgramSpan, error) {
	var all []observe.ProgramSpan
	for _, name := range slices.Sorted(mapKeys(w.programs)) {
		p := w.programs[name]
		text, err := os.ReadFile(p.stamps)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		spans := map[[2]uint64]*observe.ProgramSpan{}
		for ; len(text) >= stampSize; text = text[stampSize:] {
			term, pid := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
			at := p.host.Real(election.Instant(binary.LittleEndian.Uint64(text[16:])))
			s := spans[[2]uint64{term, pid}]
			if s == nil {
				s = &observe.ProgramSpan{Program: name, Host: p.host.Name(), Election: p.election, Term: term, PID: int(pid), From: at}
				spans[[2]uint64{term, pid}] = s
			}
			s.To = max(s.To, at)
		}
		for _, s := range spans {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b observe.ProgramSpan) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Program, b.Program))
	})
	return all, nil
}
