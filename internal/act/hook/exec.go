package hook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	maxLines    = 50   // of output that is logged of one run
	maxLine     = 2048 // bytes of a line
	outputGrace = time.Second
)

// guardSlack is how much later than this process the guard ends a run that takes too long:
// this process can log the reason.
const guardSlack = 500 * time.Millisecond

func (r *Runner) run(t *task) {
	e := t.event
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	if e.Stands != nil && !e.Stands() {
		logger.Info("hook skipped: its event is outdated")
		return
	}
	started := time.Now()
	killed, err := r.exec(t, logger)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case t.ctx.Err() != nil:
		logger.Warn("hook killed: "+context.Cause(t.ctx).Error(), "after", took)
	case killed:
		why := "this agent did not extend its deadline in time"
		if r.clock() < t.until {
			why = "the guard did not run in time to read the new deadline"
		}
		t.again = r.standsOn(t)
		logger.Warn("hook killed by its guard: "+why, "after", took, "again", t.again)
	case err != nil:
		logger.Warn("hook failed", "err", err, "took", took)
	default:
		logger.Debug("hook ran", "took", took)
	}
	if !t.again {
		r.ran(e, true)
	}
	if e.Result != nil {
		e.Result(err)
	}
}

func (r *Runner) ran(e Event, finished bool) {
	if ran := r.commands.Load().Ran; ran != nil && e.Event == election.Leading {
		ran(e.Election, e.Term, finished)
	}
}

// standsOn reports whether a run that its guard has killed is to be repeated, because its
// leadership continues. It waits until that is known, but no longer than the lease.
func (r *Runner) standsOn(t *task) bool {
	e := t.event
	if e.Event != election.Leading || e.Stands == nil || e.Until == nil || r.clock() >= t.limit {
		return false
	}
	for e.Stands() {
		if r.clock() < e.Until() {
			return true
		}
		timer := time.NewTimer(shortestStep)
		select {
		case <-t.ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
	return false
}

// exec runs the command, and reports whether its guard has killed it.
func (r *Runner) exec(t *task, logger *slog.Logger) (killed bool, err error) {
	if t.ctx.Err() != nil {
		return false, t.ctx.Err()
	}
	e, command := t.event, r.Command(t.event.Election)
	if command == "" {
		return false, nil // a reload has removed it
	}
	if err := r.check(command); err != nil {
		return false, fmt.Errorf("refuse to run hook: %w", err)
	}
	change, err := json.Marshal(e.Change)
	if err != nil {
		return false, fmt.Errorf("encode the event for the hook: %w", err)
	}
	cmd := exec.CommandContext(t.ctx, "/bin/sh", "-c", command)
	cmd.Stdin = bytes.NewReader(append(change, '\n'))
	cmd.Env = append(os.Environ(),
		"DOYEN_ELECTION="+string(e.Election),
		"DOYEN_EVENT="+string(e.Event),
		"DOYEN_LEADER="+e.Leader,
		"DOYEN_TERM="+strconv.FormatUint(uint64(e.Term), 10),
	)
	cmd.SysProcAttr = Attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A process that left the group may hold the output open: do not wait for it any longer.
	cmd.WaitDelay = outputGrace
	out := &output{logger: logger}
	cmd.Stdout, cmd.Stderr = out, out
	defer out.flush()
	t.limit = r.clock().Add(r.commands.Load().Limit + guardSlack)
	t.until = e.until(t.limit)
	r.mu.Lock()
	guard := r.guard
	r.mu.Unlock()
	guard.cover(cmd, t.key, t.until)
	r.ran(e, false)
	if err = cmd.Start(); err == nil {
		r.began(t, cmd.Process.Pid, guard)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			r.prolong(t, stop)
		}()
		if awaitEnd(cmd.Process.Pid) {
			r.over(t) // before another process can have its number
		}
		err = cmd.Wait()
		close(stop)
		<-stopped
		killed = r.over(t)
	}
	if err != nil {
		return killed, fmt.Errorf("run hook: %w", err)
	}
	return false, nil
}

// began records a run that was started under that guard. A newer guard does not know of the
// run, so it is notified here.
func (r *Runner) began(t *task, group int, under *guard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.group = group
	if r.guard != under {
		r.guard.adopt(t.key, t.group, t.until)
	}
}

// over reports the end of the run to the guard, and returns whether the guard has killed the run.
func (r *Runner) over(t *task) (killed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.group > 0 {
		t.group = 0
		r.guard.over(t.key)
	}
	t.killed = r.guard.killed(t.key) || t.killed
	return t.killed
}

// until returns by when a run has to end, as far as is known now.
func (e Event) until(limit election.Instant) election.Instant {
	if e.Until == nil {
		return limit
	}
	return min(limit, e.Until())
}

// prolong sends the run's deadline to the guard several times a lease.
func (r *Runner) prolong(t *task, stop <-chan struct{}) {
	for {
		timer := time.NewTimer(max(t.until.Sub(r.clock())/4, shortestStep))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if now := t.event.until(t.limit); now > t.until { // a promised deadline is not taken back here: kill ends a run early
			r.mu.Lock()
			t.until = now
			r.guard.prolong(t.key, t.until)
			r.mu.Unlock()
		}
	}
}

// shortestStep bounds how often a guard is sent a deadline.
const shortestStep = 10 * time.Millisecond

// output logs the first lines that a command writes, and counts the rest. exec writes to it
// from one goroutine, since both streams are the same value.
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
		o.logger.Info("hook output", "line", s[:min(len(s), maxLine)])
	}
}

func (o *output) flush() {
	if len(o.rest) > 0 {
		o.line(string(o.rest))
	}
	if o.lines > maxLines {
		o.logger.Info("hook wrote more than is logged", "lines", o.lines)
	}
}

var _ io.Writer = (*output)(nil)
