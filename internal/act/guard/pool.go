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
	// markVariable is the environment variable that identifies a run in the processes that it starts.
	markVariable = "DOYEN_RUN"
	// outputGrace is how long the output may stay open when the command has ended but has left something running.
	outputGrace = time.Second
	// shortestStep is the shortest time between two deadlines that are sent to a guard.
	shortestStep = 10 * time.Millisecond
	// lateAfter is how late a guard's kill may be.
	lateAfter = 40 * time.Millisecond
	// spare is how many free guards are kept for the next commands.
	spare = 2
)

// The errors of a run whose end was not caused by its command.
var (
	// ErrDeadline: the guard killed the command, or did not start it, since its deadline had passed.
	ErrDeadline = errors.New("its deadline was not extended in time")
	// ErrGuard: the guard has ended or is late. The run was killed, or did not start.
	ErrGuard = errors.New("its guard has ended")
)

// Pool runs lines of the shell, each under a separate guard. A free guard waits for the next line.
// Any goroutine may call the methods.
type Pool struct {
	env    []string
	nice   int
	owner  string
	logger *slog.Logger
	free   chan *Guard
	runs   atomic.Uint64
}

// Run is a line of the shell to run.
type Run struct {
	Line   string
	Env    []string // added to the pool's environment
	Input  []byte
	Output io.Writer
	// LeavesGroup means that what the line leaves running in its process group goes on. What it
	// leaves in other groups always goes on.
	LeavesGroup bool
	// Until, if not nil, returns the deadline. It is called several times during the run. A later call can
	// extend the deadline, but not shorten it.
	Until func() int64
}

// NewPool returns a pool whose commands have that environment and that nice value. owner, if not
// empty, is the name by which EndLeftovers recognises the commands.
func NewPool(env []string, nice int, owner string, logger *slog.Logger) *Pool {
	p := &Pool{env: env, nice: nice, owner: owner, logger: logger, free: make(chan *Guard, spare)}
	if g, err := New(env); err == nil {
		p.put(g)
	}
	return p
}

// take returns a free guard, or starts one.
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

// Run runs a line. It returns once the line has ended, and everything that it may not leave running. When ctx
// ends, the line is killed. The error is an Exit if the command failed.
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
		<-g.ended // by then the kernel has killed the command; endMarked kills what it has started
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

// Exit is the exit status of a command that failed.
type Exit int

func (e Exit) Error() string {
	if e > 128 {
		return fmt.Sprintf("exit status %d: ended by signal %d", int(e), int(e)-128)
	}
	return fmt.Sprintf("exit status %d", int(e))
}

// waiting is a run in progress.
type waiting struct {
	Run
	guard  *Guard
	logger *slog.Logger
	until  int64 // the last deadline that was sent to the guard
	asked  int64 // when the guard was asked to end the run; 0: it was not asked
	kills  int64 // when the guard reported its first SIGKILL; 0: it has not
	stuck  bool  // the guard has reported that killing does not help
	left   bool  // no other run can use the guard: it has ended, or has processes that go on
	pipe   *os.File
	read   chan struct{}
}

// program matches a line that only runs one program, without anything that the shell would change.
var program = regexp.MustCompile(`^/[A-Za-z0-9_/.,:@%+ =-]*$`)

// script makes the shell replace itself by the program, if the line only runs a program. If the guard is
// killed, the kernel kills only the process that the guard has executed: it has to be the program.
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
	for _, of := range []*os.File{input, end} { // a command expects blocking input and output
		if err := syscall.SetNonblock(int(of.Fd()), false); err != nil {
			feed.Close()
			pipe.Close()
			return fmt.Errorf("prepare the command's input and output: %w", err)
		}
	}
	go func() {
		_, _ = feed.Write(w.Input) // an error does not matter: many commands don't read their input
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
		return fmt.Errorf("start the command: %w: %w", ErrGuard, err)
	}
	return nil
}

// await waits for the end and extends the deadline. If the guard is late, await returns ErrGuard.
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

// due returns when the guard counts as late because it has not killed the run or reported its end. A guard
// whose kill has no effect is not late: the run goes on.
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

// hear handles a report. done is true if the run has ended.
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

// output waits until the output has been read to its end, or for outputGrace.
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
