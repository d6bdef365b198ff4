// Package health runs an operator's checks. Their outcomes decide whether this host may be a
// candidate, in all elections or in single ones.
//
// A check is a command line of the shell. It fails if its exit status is not 0 or if it has not ended in time. A
// check that is too late is killed with its process group. Fall failures in a row make the host unhealthy, and
// Rise successes in a row make it healthy again. Before the first outcome the host is unhealthy, unless the caller
// assumes otherwise. One success is enough for the first verdict. One failure is enough if the host does not lead.
//
// At most one run of each check is in progress. No check delays another one or the caller. If SIGKILL does not
// end a run, because a disk hangs, the run counts as failed. What a check leaves in its process group is
// killed. What it leaves in another group is killed only if the check itself was killed.
package health

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
)

// Check is one check. A zero value means the default.
type Check struct {
	Command        string // empty: there is no check
	Every, Timeout time.Duration
	Fall, Rise     int
	KeepLast       bool // while the check fails, the host may lead where no other host can
}

// The defaults of a Check, and the bounds of its values.
const (
	DefaultEvery   = 2 * time.Second // also the default of Timeout
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

// Host is the name of the check of the whole host, which counts for every election.
const Host election.Name = ""

// verdict is the result of the outcomes of a check so far.
type verdict struct {
	healthy bool
	known   bool // there is a verdict, from outcomes or assumed by the caller
	row     int  // outcomes in a row that contradict the verdict; before the first verdict, failures in a row
}

// add adds an outcome, and reports whether the verdict has changed or is the first one. While the
// host leads, a single failure does not become the first verdict.
func (v *verdict) add(c Check, ok, leads bool) bool {
	if v.known && ok == v.healthy {
		v.row = 0
		return false
	}
	need := 1
	switch {
	case !ok && (v.known || leads):
		need = c.Fall
	case v.known:
		need = c.Rise
	}
	if v.row++; v.row < need {
		return false
	}
	*v = verdict{healthy: ok, known: true}
	return true
}

// Checks are the running checks. Any goroutine may call the methods.
type Checks struct {
	pool    *guard.Pool
	allowed func(command string) error
	leads   func(election.Name) bool
	report  func(name election.Name, current func() bool, unhealthy string)
	logger  *slog.Logger
	ctx     context.Context

	mu      sync.Mutex
	running map[election.Name]*check
	ended   sync.WaitGroup
}

// check is one running check.
type check struct {
	Check
	verdict
	name   election.Name
	cancel context.CancelFunc
	run    func(context.Context) string
	hung   chan string // gets the outcome of the run in progress; nil: no run is in progress
}

// New returns checks that run in the pool until ctx ends. If allowed refuses a command, the check fails. leads
// reports whether this host may lead an election for which the check counts. report gets each verdict:
// unhealthy is why the host may not be a candidate, or empty. current returns false once the verdict is
// outdated.
func New(ctx context.Context, pool *guard.Pool, allowed func(command string) error, leads func(election.Name) bool,
	report func(name election.Name, current func() bool, unhealthy string), logger *slog.Logger) *Checks {
	return &Checks{pool: pool, allowed: allowed, leads: leads, report: report, logger: logger, ctx: ctx, running: map[election.Name]*check{}}
}

// Set replaces the checks. An unchanged check runs on. For a new or changed one, healthy reports whether to
// assume success at the start. Set returns the removed checks, whose verdicts the caller has to forget.
func (h *Checks) Set(checks map[election.Name]Check, healthy func(election.Name) bool) (removed []election.Name) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(h.running)) {
		if _, kept := checks[name]; !kept {
			h.running[name].cancel()
			delete(h.running, name)
			removed = append(removed, name)
		}
	}
	for name, c := range checks {
		c = c.Resolved()
		fit := healthy(name)
		k := &check{Check: c, name: name, verdict: verdict{healthy: fit, known: fit}}
		k.run = func(ctx context.Context) string { return h.once(ctx, k) }
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

// Wait returns once ctx and then all checks have ended.
func (h *Checks) Wait() {
	<-h.ctx.Done()
	h.mu.Lock() // waits for a Set in progress; later ones start no check
	clear(h.running)
	h.mu.Unlock()
	h.ended.Wait()
}

func (h *Checks) current(k *check) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[k.name] == k
}

func (h *Checks) run(ctx context.Context, k *check) {
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	for {
		why := k.outcome(ctx)
		if ctx.Err() != nil {
			return
		}
		if k.add(k.Check, why == "", h.leads(k.name)) {
			if why != "" {
				why = Failed + why
			}
			h.log(ctx, k, why)
			h.report(k.name, func() bool { return h.current(k) }, why)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *Checks) log(ctx context.Context, k *check, why string) {
	logger, level := h.logger, slog.LevelInfo
	if k.name != Host {
		logger = logger.With("election", k.name)
	}
	if why != "" {
		level = slog.LevelWarn
	}
	logger.Log(ctx, level, "the verdict of a check has changed", "unhealthy", why)
}

// Failed is how the reason in each unhealthy verdict begins.
const Failed = "check failed: "

// dying is how long a killed run may take to end.
const dying = 2 * time.Second

// outcome runs the check, and returns why it failed; empty: it succeeded. If a run does not end even when it is
// killed, every call fails until it has ended.
func (k *check) outcome(ctx context.Context) string {
	if k.hung == nil {
		k.hung = make(chan string, 1)
		go func(to chan<- string) { to <- k.run(ctx) }(k.hung)
	}
	timer := time.NewTimer(k.Timeout + dying)
	defer timer.Stop()
	ended := ctx.Done()
	for {
		select {
		case why := <-k.hung:
			k.hung = nil
			return why
		case <-ended:
			ended = nil
			timer.Reset(dying)
		case <-timer.C:
			return fmt.Sprintf("it did not end within %s, nor when it was killed", k.Timeout)
		}
	}
}

// once runs the check, and returns why it failed; empty: it succeeded.
func (h *Checks) once(ctx context.Context, k *check) string {
	if err := h.allowed(k.Command); err != nil {
		return err.Error()
	}
	limit, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	var out LastLine
	r := guard.Run{Line: k.Command, Output: &out}
	if k.name != Host {
		r.Env = []string{"DOYEN_ELECTION=" + string(k.name)}
	}
	again := time.NewTicker(repeatAfter)
	defer again.Stop()
	for {
		err := h.pool.Run(limit, r)
		if errors.Is(err, guard.ErrGuard) { // that the guard has ended shows nothing about the host
			select {
			case <-limit.Done():
			case <-again.C:
				continue
			}
		}
		switch {
		case limit.Err() != nil:
			return strings.TrimSuffix(fmt.Sprintf("it did not end within %s: %s", k.Timeout, out.Text()), ": ")
		case err == nil, errors.Is(err, exec.ErrWaitDelay):
			return ""
		}
		return cmp.Or(out.Text(), err.Error())
	}
}

// repeatAfter is the wait before a run is repeated because its guard was killed, for example when memory was
// short.
const repeatAfter = 100 * time.Millisecond

// maxLine is how many bytes of a check's line are shown.
const maxLine = 200

// LastLine keeps the last line that is not blank. Any goroutine may use it.
type LastLine struct {
	mu         sync.Mutex
	last, open []byte
}

func (l *LastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// Text returns the line in the form in which it is shown; empty: there is none.
func (l *LastLine) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.last
	if len(bytes.TrimSpace(l.open)) > 0 {
		line = l.open
	}
	return Line(string(line))
}

// Line makes a line of another program fit to be shown: printable, and not too long.
func Line(line string) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
	text = strings.TrimSpace(text)
	for len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "")
	}
	return text
}
