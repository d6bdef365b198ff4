// Package hook runs an operator's command at every change of leadership.
//
// It guarantees order, one run at a time, a bounded queue and a bounded run:
// a command that takes too long is killed with its whole process group. When
// more than the queue holds is waiting, changes in between are left out, the
// newest of an election never. A command that was told this agent leads is
// killed as soon as that leadership ends, so that the run that tells the end
// is not kept waiting.
//
// It does not guarantee that what a command left running elsewhere (a service
// it started, a process in a group of its own) stops.
package hook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	maxWaiting  = 32
	maxLines    = 50   // of output logged, per run
	maxLine     = 2048 // bytes of a line
	outputGrace = time.Second
)

// Event is one change to tell the command.
type Event struct {
	Election election.Name
	Event    election.Event // leading, following or none
	Leader   string         // name; empty if none
	Term     election.Term
	// Done, if not nil, is called once after the command has run for this event
	// or a later one of the election, or failed, or was given up.
	Done func()
}

// Runner runs the command. Its methods may be called from any goroutine.
type Runner struct {
	command string
	limit   time.Duration
	logger  *slog.Logger

	wake   chan struct{}
	ended  chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []Event
	closed  bool
	current Event // being run
	kill    context.CancelFunc
}

// Start starts a runner of `sh -c command`; limit bounds each run.
func Start(command string, limit time.Duration, logger *slog.Logger) *Runner {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{
		command: command, limit: limit, logger: logger,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel,
	}
	go r.loop(ctx)
	return r
}

// Enqueue hands over an event; it never blocks.
func (r *Runner) Enqueue(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		if e.Done != nil {
			go e.Done()
		}
		return
	}
	r.waiting = append(r.waiting, e)
	r.thin()
	if r.kill != nil && r.current.Election == e.Election && r.current.Event == election.Leading && e.Event != election.Leading {
		r.kill()
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// thin leaves out the oldest events that a newer one of their election
// outdates; whoever waits for one of them waits for that newer one. Each
// election keeps its newest, so the bound is maxWaiting or the number of
// elections.
func (r *Runner) thin() {
	for i := 0; i < len(r.waiting) && len(r.waiting) > maxWaiting; {
		e := r.waiting[i]
		next := slices.IndexFunc(r.waiting[i+1:], func(o Event) bool { return o.Election == e.Election })
		if next < 0 {
			i++
			continue
		}
		newer := &r.waiting[i+1+next]
		newer.Done = both(e.Done, newer.Done)
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
}

func both(a, b func()) func() {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func() { a(); b() }
}

// Close lets what is waiting run until ctx ends, then kills it.
func (r *Runner) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
	r.cancel()
	<-r.ended
}

func (r *Runner) loop(ctx context.Context) {
	defer close(r.ended)
	for {
		e, more := r.next()
		if !more {
			return
		}
		if e == nil {
			<-r.wake
			continue
		}
		r.run(ctx, *e)
		if e.Done != nil {
			e.Done()
		}
	}
}

// next takes the oldest event; nil if none waits, false if none will come.
func (r *Runner) next() (*Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil, !r.closed
	}
	e := r.waiting[0]
	r.waiting = slices.Delete(r.waiting, 0, 1)
	return &e, true
}

func (r *Runner) run(ctx context.Context, e Event) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	r.mu.Lock()
	r.current, r.kill = e, cancel
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.current, r.kill = Event{}, nil
		r.mu.Unlock()
	}()

	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	started := time.Now()
	err := r.exec(ctx, e, logger)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		logger.Warn("hook killed: it took too long", "limit", r.limit)
	case ctx.Err() != nil:
		logger.Warn("hook killed: what it was told is over", "after", took)
	case err != nil:
		logger.Warn("hook failed", "err", err, "took", took)
	default:
		logger.Debug("hook ran", "took", took)
	}
}

func (r *Runner) exec(ctx context.Context, e Event, logger *slog.Logger) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.command)
	cmd.Env = append(os.Environ(),
		"DOYEN_ELECTION="+string(e.Election),
		"DOYEN_EVENT="+string(e.Event),
		"DOYEN_LEADER="+e.Leader,
		"DOYEN_TERM="+strconv.FormatUint(uint64(e.Term), 10),
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A process that left the group may hold the output open: wait no longer.
	cmd.WaitDelay = outputGrace
	out := &output{logger: logger}
	cmd.Stdout, cmd.Stderr = out, out
	defer out.flush()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run hook: %w", err)
	}
	return nil
}

// output logs the first lines a command writes, and counts the rest. exec
// writes to it from one goroutine, since both streams are the same value.
type output struct {
	logger *slog.Logger
	rest   []byte
	lines  int
}

func (o *output) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		n, line, _ := bufio.ScanLines(o.rest, false)
		if n == 0 {
			break
		}
		o.line(string(line))
		o.rest = o.rest[n:]
	}
	if len(o.rest) > maxLine {
		o.line(string(o.rest[:maxLine]))
		o.rest = nil
	}
	return len(p), nil
}

func (o *output) line(s string) {
	o.lines++
	if o.lines <= maxLines {
		o.logger.Info("hook says", "line", s[:min(len(s), maxLine)])
	}
}

func (o *output) flush() {
	if len(o.rest) > 0 {
		o.line(string(o.rest))
	}
	if o.lines > maxLines {
		o.logger.Info("hook said more than is logged", "lines", o.lines)
	}
}

var _ io.Writer = (*output)(nil)
