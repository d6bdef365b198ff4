package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	shell = "/bin/sh"
	// markVariable names a run in the environment of what it starts.
	markVariable = "DOYEN_RUN"
	// outputGrace is for how long what a command has left running may hold its output open.
	outputGrace = time.Second
	// shortestStep bounds how often a guard is sent a deadline.
	shortestStep = 10 * time.Millisecond
	// lateAfter is how late a guard may be with a kill.
	lateAfter = 40 * time.Millisecond
	// spare is how many guards wait for a command.
	spare = 2
)

// How a run ended for which its command is not to blame.
var (
	// ErrDeadline: the guard has killed it, or not begun it, since its deadline had passed.
	ErrDeadline = errors.New("its deadline was not extended in time")
	// ErrGuard: the guard was killed, and the run with it.
	ErrGuard = errors.New("its guard has ended")
)

// Pool runs lines of the shell, each under a guard of its own. A guard that is free waits for the
// next line. The methods may be called from any goroutine.
type Pool struct {
	env    []string
	nice   int
	owner  string
	logger *slog.Logger
	free   chan *Guard
	runs   atomic.Uint64
}

// Run is a line to run.
type Run struct {
	Line   string
	Env    []string // beside the pool's
	Input  []byte
	Output io.Writer
	// LeavesGroup says that what the line leaves running in its process group goes on; what it
	// leaves elsewhere always does.
	LeavesGroup bool
	// Until, if not nil, returns the deadline, and is called several times until then. A deadline
	// that was given is not taken back.
	Until func() int64
}

// NewPool returns a pool whose commands have that environment and that nice value. owner, if not
// empty, names whose they are, for EndLeftovers.
func NewPool(env []string, nice int, owner string, logger *slog.Logger) *Pool {
	p := &Pool{env: env, nice: nice, owner: owner, logger: logger, free: make(chan *Guard, spare)}
	if g, err := New(env); err == nil {
		p.put(g)
	}
	return p
}

// take returns a guard that is free.
func (p *Pool) take() (*Guard, error) {
	for {
		select {
		case g := <-p.free:
			if !g.hasEnded() {
				return g, nil
			}
		default:
			return New(p.env)
		}
	}
}

func (p *Pool) put(g *Guard) {
	select {
	case p.free <- g:
	default:
		g.Close()
	}
}

// Run runs a line, and returns once neither it nor what it may not leave is left. It is killed when
// ctx ends. The error is an *Exit if the command failed.
func (p *Pool) Run(ctx context.Context, r Run) error {
	g, err := p.take()
	if err != nil {
		return err
	}
	named := mark(p.owner, p.runs.Add(1))
	w := &waiting{Run: r, guard: g, until: never, logger: p.logger}
	if err = w.start(p.nice, named); err != nil {
		g.Close()
		return err
	}
	err = w.await(ctx)
	if errors.Is(err, ErrGuard) {
		_ = g.process.Kill()
		<-g.ended // the kernel has killed the command, but not what it has started
		endMarked(named, p.logger)
		w.left = true
	}
	if w.left {
		g.Close()
	} else {
		p.put(g)
	}
	if late := w.output(); err == nil {
		err = late
	}
	return err
}

// Exit is the status of a command that failed.
type Exit int

func (e Exit) Error() string {
	if e > 128 {
		return fmt.Sprintf("exit status %d: ended by signal %d", int(e), int(e)-128)
	}
	return fmt.Sprintf("exit status %d", int(e))
}

// waiting is a run under way.
type waiting struct {
	Run
	guard  *Guard
	logger *slog.Logger
	until  int64 // the deadline that the guard was sent
	asked  int64 // since when it is to be ended; 0: it is not
	kills  int64 // when the guard has reported that it kills; 0: it has not
	stuck  bool  // killing has not helped so far
	left   bool  // the guard has processes that go on, or has ended: it is not for another run
	pipe   *os.File
	read   chan struct{}
}

// program is a line that runs one program, of whose words the shell changes nothing.
var program = regexp.MustCompile(`^/[A-Za-z0-9_/.,:@%+ =-]*$`)

// script has the shell become the program, if the line is nothing else. If the guard is killed, the
// kernel kills only the process that the guard has executed, which is then the program itself.
func script(line string) string {
	if program.MatchString(line) {
		return "exec " + line
	}
	return line
}

func (w *waiting) start(nice int, named string) error {
	input, feed, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make the command's input: %w", err)
	}
	defer input.Close()
	pipe, end, err := os.Pipe()
	if err != nil {
		feed.Close()
		return fmt.Errorf("make the command's output: %w", err)
	}
	defer end.Close()
	for _, of := range []*os.File{input, end} { // a command expects its input and output to block
		if err := syscall.SetNonblock(int(of.Fd()), false); err != nil {
			feed.Close()
			pipe.Close()
			return fmt.Errorf("prepare the command's input and output: %w", err)
		}
	}
	go func() {
		_, _ = feed.Write(w.Input) // many commands don't read it
		feed.Close()
	}()
	w.pipe, w.read = pipe, make(chan struct{})
	go func() {
		defer close(w.read)
		_, _ = io.Copy(w.Output, pipe)
	}()
	if w.Until != nil {
		w.until = w.Until()
	}
	env := w.Env
	if named != "" {
		env = append(slices.Clone(env), markVariable+"="+named)
	}
	o := Order{Do: Start, Path: shell, Args: [][]byte{[]byte(shell), []byte("-c"), []byte(script(w.Line))}, Env: env, Nice: nice,
		Standard: true, LeavesGroup: w.LeavesGroup, Schedule: Schedule{w.until, w.until}}
	if err := w.guard.Send(o, input, end); err != nil {
		pipe.Close()
		return fmt.Errorf("start the command: %w", err)
	}
	return nil
}

// await waits for the end, prolongs the deadline, and kills the guard if that is late.
func (w *waiting) await(ctx context.Context) error {
	asked := ctx.Done()
	for {
		select {
		case report, ok := <-w.guard.Reports:
			if done, err := w.hear(report, ok); done {
				return err
			}
		case <-asked:
			asked, w.asked = nil, alarm.Now()
			w.guard.Tell(Order{Do: Stop})
		case <-time.After(w.wait()):
			if alarm.Now() >= w.due() {
				w.logger.Warn("a guard is late: killing it and what it runs")
				return ErrGuard
			}
			if w.Until == nil {
				continue
			}
			if until := w.Until(); until > w.until {
				w.until = until
				w.guard.Tell(Order{Do: Lease, Schedule: Schedule{until, until}})
			}
		}
	}
}

// due is when a guard is late that has not killed, or has not reported what came of it. A guard that
// kills in vain is not late: the run has not ended, and what waits for its end goes on waiting.
func (w *waiting) due() int64 {
	switch {
	case w.stuck:
		return never
	case w.kills != 0:
		return w.kills + int64(StuckAfter+lateAfter)
	case w.asked != 0:
		return w.asked + int64(lateAfter)
	case w.until == never:
		return never
	}
	return w.until + int64(lateAfter)
}

func (w *waiting) wait() time.Duration {
	if due := w.due(); due != never {
		return min(alarm.Until(due), max(alarm.Until(w.until)/4, shortestStep))
	}
	return time.Hour
}

// hear takes a report. done says that the run has ended.
func (w *waiting) hear(r Report, ok bool) (done bool, err error) {
	switch {
	case !ok:
		return true, ErrGuard
	case r.Kind == Kills:
		w.kills = alarm.Now()
	case r.Kind == Stuck:
		w.stuck = true
		w.logger.Warn(r.Why)
	case r.Kind == Failed:
		return true, errors.New(r.Why)
	case r.Kind != Gone:
	case r.Why == ByLease || r.Why == TooLate:
		return true, ErrDeadline
	default:
		w.left = r.Others
		if r.Status != 0 {
			return true, Exit(r.Status)
		}
		return true, nil
	}
	return false, nil
}

// output waits for the end of the output.
func (w *waiting) output() error {
	defer w.pipe.Close()
	select {
	case <-w.read:
		return nil
	case <-time.After(outputGrace):
		_ = w.pipe.SetReadDeadline(time.Now())
		<-w.read
		return exec.ErrWaitDelay
	}
}

// Nice returns this process's nice value.
func Nice() int {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - raw
}
