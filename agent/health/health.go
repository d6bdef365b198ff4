// Package health runs an operator's checks, and decides by them whether this host may be a
// candidate, in all elections or in single ones.
//
// A check is a command line of the shell. It fails if its status is not 0, or if it has not ended
// in time: then it is killed with its process group. Fall failures in a row make the host
// unhealthy, Rise successes healthy again. Before its first outcome a host is unhealthy, unless
// the caller assumes otherwise: one success is enough then.
//
// It guarantees that at most one run of each check is under way, and that none of them delays its
// caller: each check has its own goroutine. It does not guarantee that processes which a check put
// into another process group end with it.
package health

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/election"
)

// Check is one check; zero values stand for the defaults.
type Check struct {
	Command        string // empty: there is none
	Every, Timeout time.Duration
	Fall, Rise     int
}

// The defaults of a Check, and its bounds.
const (
	DefaultEvery   = 2 * time.Second // also of Timeout
	DefaultFall    = 3
	DefaultRise    = 2
	Shortest       = 10 * time.Millisecond
	Longest        = time.Hour
	MostFallOrRise = 1000
)

// Resolved fills in the defaults.
func (c Check) Resolved() Check {
	c.Every, c.Timeout = cmp.Or(c.Every, DefaultEvery), cmp.Or(c.Timeout, DefaultEvery)
	c.Fall, c.Rise = cmp.Or(c.Fall, DefaultFall), cmp.Or(c.Rise, DefaultRise)
	return c
}

// Host names the check of the host as a whole, which counts for every election.
const Host election.Name = ""

// unknown is why a host is unhealthy before the first outcome.
const unknown = "no check has succeeded yet"

// Unknown returns the verdicts before the first outcome: why each check keeps this host from being
// a candidate.
func Unknown(checks map[election.Name]Check) map[election.Name]string {
	unhealthy := map[election.Name]string{}
	for name := range checks {
		unhealthy[name] = unknown
	}
	return unhealthy
}

// judge turns outcomes into a verdict.
type judge struct {
	fall, rise int
	healthy    bool
	row        int // outcomes in a row against the verdict
	heard      bool
}

// add takes an outcome, and reports whether the verdict has changed, or is the first.
func (j *judge) add(ok bool) bool {
	first := !j.heard && !j.healthy
	j.heard = true
	if ok == j.healthy {
		j.row = 0
		return first
	}
	need := j.fall
	if ok {
		need = j.rise
	}
	if j.row++; !first && j.row < need {
		return false
	}
	j.healthy, j.row = ok, 0
	return true
}

// Checks are the checks that run. Its methods may be called from any goroutine.
type Checks struct {
	report func(name election.Name, current func() bool, unhealthy string)
	logger *slog.Logger
	ctx    context.Context

	mu      sync.Mutex
	running map[election.Name]*check
	ended   sync.WaitGroup
}

// check is one check that runs.
type check struct {
	Check
	judge
	name   election.Name
	cancel context.CancelFunc
}

// New returns checks that run until ctx ends. report is called with each verdict, unhealthy being
// why the host may not be a candidate, empty if it may; current reports whether the verdict still
// counts.
func New(ctx context.Context, report func(name election.Name, current func() bool, unhealthy string), logger *slog.Logger) *Checks {
	return &Checks{report: report, logger: logger, ctx: ctx, running: map[election.Name]*check{}}
}

// Set replaces the checks. A check that has changed keeps its verdict, and a new one starts with
// that of healthy. The caller forgets the verdicts of the checks that were removed, which Set
// returns.
func (h *Checks) Set(checks map[election.Name]Check, healthy func(election.Name) bool) (removed []election.Name) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.running)) {
		if _, kept := checks[name]; !kept {
			h.running[name].cancel()
			delete(h.running, name)
			removed = append(removed, name)
		}
	}
	for name, c := range checks {
		c = c.Resolved()
		k := &check{Check: c, name: name, judge: judge{fall: c.Fall, rise: c.Rise, healthy: healthy(name)}}
		if was := h.running[name]; was != nil {
			if was.Check == c {
				continue
			}
			was.cancel()
		}
		var ctx context.Context
		ctx, k.cancel = context.WithCancel(h.ctx)
		h.running[name] = k
		h.ended.Go(func() { h.run(ctx, k) })
	}
	return removed
}

// Wait returns once all checks have ended, after ctx has.
func (h *Checks) Wait() { h.ended.Wait() }

func (h *Checks) current(k *check) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[k.name] == k
}

func (h *Checks) run(ctx context.Context, k *check) {
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	for {
		why := k.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if k.add(why == "") {
			if why != "" {
				why = "check failed: " + why
			}
			h.logger.Log(ctx, map[bool]slog.Level{true: slog.LevelInfo, false: slog.LevelWarn}[why == ""], "the verdict of a check has changed", "election", k.name, "unhealthy", why)
			h.report(k.name, func() bool { return h.current(k) }, why)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// once runs the check, and returns why it failed; empty: it did not.
func (k *check) once(ctx context.Context) string {
	if err := hook.CheckAsRoot(k.Command); err != nil {
		return err.Error()
	}
	limit, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limit, "/bin/sh", "-c", k.Command)
	if k.name != Host {
		cmd.Env = append(os.Environ(), "DOYEN_ELECTION="+string(k.name))
	}
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what it left behind may hold its output open
	var out lastLine
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case limit.Err() != nil:
		return strings.TrimSuffix(fmt.Sprintf("it did not end within %s: %s", k.Timeout, out.text()), ": ")
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return ""
	}
	return cmp.Or(out.text(), err.Error())
}

// maxLine bounds the line of a check that is shown, in bytes.
const maxLine = 200

// lastLine keeps the last line that is not blank.
type lastLine struct{ last, open []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		l.open = append(l.open, line[:min(len(line), max(0, 4*maxLine-len(l.open)))]...)
		if !ended {
			return len(p), nil
		}
		if len(bytes.TrimSpace(l.open)) > 0 {
			l.last = bytes.Clone(l.open)
		}
		l.open, rest = l.open[:0], after
	}
}

func (l *lastLine) text() string {
	line := l.last
	if len(bytes.TrimSpace(l.open)) > 0 {
		line = l.open
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(line), "?"))
	text = strings.TrimSpace(text)
	for len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "")
	}
	return text
}
