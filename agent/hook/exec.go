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
	maxLines    = 50   // of output logged, per run
	maxLine     = 2048 // bytes of a line
	outputGrace = time.Second
)

// guardSlack is how much later than this process the guard ends a run that takes
// too long: this one can say why.
const guardSlack = 500 * time.Millisecond

func (r *Runner) run(t *task) {
	e := t.event
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	if e.Stands != nil && !e.Stands() {
		logger.Info("hook left out: what it would be told is over")
		return
	}
	started := time.Now()
	until, err := r.exec(t, logger)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case t.ctx.Err() != nil:
		logger.Warn("hook killed: "+context.Cause(t.ctx).Error(), "after", took)
	case err != nil && r.clock() >= until:
		logger.Warn("hook killed by its guard: this agent did not prolong it in time", "after", took)
	case err != nil:
		logger.Warn("hook failed", "err", err, "took", took)
	default:
		logger.Debug("hook ran", "took", took)
	}
}

// exec runs the command, and returns by when its guard would have ended it.
func (r *Runner) exec(t *task, logger *slog.Logger) (until election.Instant, err error) {
	if t.ctx.Err() != nil {
		return election.Never, t.ctx.Err()
	}
	e, command := t.event, r.commands.For(t.event.Election)
	if err := r.check(command); err != nil {
		return election.Never, fmt.Errorf("refuse to run hook: %w", err)
	}
	change, err := json.Marshal(e.Change)
	if err != nil {
		return election.Never, fmt.Errorf("encode the event for the hook: %w", err)
	}
	cmd := exec.CommandContext(t.ctx, "/bin/sh", "-c", command)
	cmd.Stdin = bytes.NewReader(append(change, '\n'))
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
	r.mu.Lock()
	guard := r.watched()
	r.mu.Unlock()
	limit := r.clock().Add(r.commands.Limit + guardSlack)
	until = e.until(limit)
	guard.cover(cmd, t.key, until)
	if err = cmd.Start(); err == nil {
		stop := make(chan struct{})
		prolonged := make(chan election.Instant)
		go func() { prolonged <- r.prolong(guard, t, until, limit, stop) }()
		err = cmd.Wait()
		close(stop)
		until = <-prolonged
	}
	guard.over(t.key)
	if err != nil {
		return until, fmt.Errorf("run hook: %w", err)
	}
	return until, nil
}

// until is by when a run has to have ended by what is known now.
func (e Event) until(limit election.Instant) election.Instant {
	if e.Until == nil {
		return limit
	}
	return min(limit, e.Until())
}

// prolong tells the guard, several times a lease, how long the run may go on, and
// returns what it was told last.
func (r *Runner) prolong(guard *guard, t *task, until, limit election.Instant, stop <-chan struct{}) election.Instant {
	for {
		timer := time.NewTimer(max(until.Sub(r.clock())/4, shortestStep))
		select {
		case <-stop:
			timer.Stop()
			return until
		case <-timer.C:
		}
		if now := t.event.until(limit); now > until { // what was promised once is not taken back here: that is for kill
			until = now
			guard.prolong(t.key, until)
		}
	}
}

// shortestStep bounds how often a guard is told something of a run.
const shortestStep = 10 * time.Millisecond

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
