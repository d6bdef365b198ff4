package hook

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	maxLines = 50   // lines of output that are logged of one run
	maxLine  = 2048 // bytes that are logged of one line
)

// guardSlack is how much later than this process the guard kills a run that takes too long. So this process
// usually kills it, and can log the reason.
const guardSlack = 500 * time.Millisecond

func (r *Runner) run(t *task) {
	e := t.event
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	if e.Stands != nil && !e.Stands() {
		logger.Info("hook skipped: its event is outdated")
		return
	}
	started := time.Now()
	err := r.exec(t, logger)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case t.ctx.Err() != nil:
		logger.Warn("hook killed: "+context.Cause(t.ctx).Error(), "after", took)
	case errors.Is(err, guard.ErrDeadline), errors.Is(err, guard.ErrGuard):
		undoes := e.StopIn != 0 && !e.repeated // at the end of a leadership the run is repeated once, before the term is released
		t.event.repeated = undoes
		t.again = undoes || r.standsOn(t)
		logger.Warn("hook killed by its guard: "+err.Error(), "after", took, "again", t.again)
	case err != nil:
		logger.Warn("hook failed", "err", err, "took", took)
	default:
		logger.Debug("hook ran", "took", took)
	}
	if e.Result != nil {
		e.Result(err)
	}
}

// standsOn reports whether to repeat a run that its guard has killed, because its leadership continues. It
// waits until that is known, but not longer than the lease.
func (r *Runner) standsOn(t *task) bool {
	e := t.event
	if e.Event != election.Leading || e.Stands == nil || e.Until == nil || boottime.Now() >= t.limit {
		return false
	}
	for e.Stands() {
		if boottime.Now() < e.Until() {
			return true
		}
		select {
		case <-t.ctx.Done():
			return false
		case <-time.After(shortestStep):
		}
	}
	return false
}

// shortestStep is the time between two checks of standsOn.
const shortestStep = 10 * time.Millisecond

func (r *Runner) exec(t *task, logger *slog.Logger) error {
	e, command := t.event, cmp.Or(t.event.Command, r.Command(t.event.Election))
	if command == "" || t.ctx.Err() != nil {
		return t.ctx.Err() // nil if a reload has removed the command: then nothing is to be run
	}
	if err := CheckAsRoot(command); err != nil {
		return fmt.Errorf("refuse to run hook: %w", err)
	}
	change, err := json.Marshal(e.Change)
	if err != nil {
		return fmt.Errorf("encode the event for the hook: %w", err)
	}
	out := &output{logger: logger}
	defer out.flush()
	t.limit = boottime.Now().Add(r.commands.Load().Limit + guardSlack)
	err = r.pool.Run(t.ctx, guard.Run{
		Line:  command,
		Input: append(change, '\n'),
		Env: []string{
			"DOYEN_ELECTION=" + string(e.Election),
			"DOYEN_EVENT=" + string(e.Event),
			"DOYEN_LEADER=" + e.Leader,
			"DOYEN_TERM=" + strconv.FormatUint(uint64(e.Term), 10),
		},
		Output:      out,
		LeavesGroup: true,
		Until:       func() int64 { return int64(e.until(t.limit)) },
	})
	return wrap.Error(err, "run hook")
}

// until returns the time by which a run has to end, as far as it is known.
func (e Event) until(limit election.Instant) election.Instant {
	if e.Until == nil {
		return limit
	}
	return min(limit, e.Until())
}

// output logs the first lines that a command writes, and counts the rest. The one goroutine that writes to it
// ends with the run.
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
