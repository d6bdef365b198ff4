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
)

const (
	maxLines    = 50   // of output logged, per run
	maxLine     = 2048 // bytes of a line
	outputGrace = time.Second
)

func (r *Runner) run(ctx context.Context, e Event) {
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	if e.Stands != nil && !e.Stands() {
		logger.Info("hook left out: what it would be told is over")
		return
	}
	started := time.Now()
	err := r.exec(ctx, e, logger)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case ctx.Err() != nil:
		logger.Warn("hook killed: "+context.Cause(ctx).Error(), "after", took)
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
	command := r.commands.For(e.Election)
	if err := r.check(command); err != nil {
		return fmt.Errorf("refuse to run hook: %w", err)
	}
	change, err := json.Marshal(e.Change)
	if err != nil {
		return fmt.Errorf("encode what the hook is told: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
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
	r.guard.cover(cmd)
	defer r.guard.over()
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
