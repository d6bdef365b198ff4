package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type Options struct {
	// Binary is the product: the agents, and the `doyen` of scripts.
	Binary hosts.Binary
	// Long makes the condition [long] true. Scripts then last as long as their names say.
	Long bool
	// Loopback keeps the agents on the loopback interface even if they could have their own
	// networks. It makes the condition [network] false.
	Loopback bool
	// Seed determines the random faults of the network.
	Seed uint64
	// Verbose keeps the whole transcript of a script that passes.
	Verbose bool
	// Undecided, if not nil, is called after each play that decides nothing, if another play
	// follows.
	Undecided func(Result)
	// Logs is the directory below which the logs of a failed script are kept; "" is the
	// system's temporary directory.
	Logs string
}

type Result struct {
	Name    string
	Passed  bool
	Skipped bool // the script's own command skip ended the play
	Took    time.Duration
	Log     string // the transcript; if the script passed, only its headings
	// Recording is what was seen; nil if no host was laid out.
	Recording *observe.Recording
	// Excuse describes the pauses of the machine during a play that failed, if they may have made
	// it fail; otherwise "".
	Excuse string
}

// maxPlays is how often a script is played at most, if no play decides.
const maxPlays = 5

// Run plays one script. If the script fails, even because ctx ended, the result contains the
// failure. If the machine was paused during a play that fails, the play decides nothing, unless a
// rule is broken that holds on any machine. Then Run calls o.Undecided and plays the script
// again, up to maxPlays times.
func Run(ctx context.Context, o Options, file string) (Result, error) {
	return untilDecided(o.Undecided, func() (Result, error) { return play(ctx, o, file) })
}

func untilDecided(undecided func(Result), play func() (Result, error)) (Result, error) {
	for n := 1; ; n++ {
		r, err := play()
		if err != nil || r.Excuse == "" || n == maxPlays {
			return r, err
		}
		if undecided != nil {
			undecided(r)
		}
	}
}

func play(ctx context.Context, o Options, file string) (Result, error) {
	if info, err := os.Stat(file); err != nil {
		return Result{}, fmt.Errorf("read the script: %w", err)
	} else if info.IsDir() {
		return Result{}, fmt.Errorf("read the script: %s is a directory", file)
	}
	began := time.Now()
	top := &scriptT{verbose: o.Verbose}
	var w *world
	top.Run("", func(t testscript.T) {
		testscript.RunT(t, testscript.Params{
			Files:               []string{file},
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			Cmds:                commands(),
			Condition:           func(name string) (bool, error) { return conditionOf(w, name) },
			Setup: func(env *testscript.Env) (err error) {
				w, err = newWorld(ctx, o, file, env)
				return err
			},
		})
	})
	r := Result{Took: time.Since(began), Passed: !top.failed && !top.skipped, Skipped: top.skipped, Log: transcript(top.log.String())}
	if w == nil {
		return r, errors.New("play the script: " + strings.TrimSpace(r.Log))
	}
	r.Name, r.Recording, r.Excuse = w.name, w.recording, w.excuse
	if ctx.Err() != nil {
		return r, fmt.Errorf("play %s: interrupted: %w", w.name, context.Cause(ctx))
	}
	return r, nil
}

// transcript removes the environment that testscript writes first.
func transcript(log string) string {
	if strings.HasPrefix(log, "WORK=") {
		_, log, _ = strings.Cut(log, "\n\n")
	}
	return log
}

// scriptT is the T with which testscript plays scripts, one after another. Each has its own
// goroutine, which ends at a failure.
type scriptT struct {
	verbose         bool
	log             strings.Builder
	failed, skipped bool
}

func (t *scriptT) Skip(args ...any) {
	t.Log(args...)
	t.skipped = true
	runtime.Goexit()
}

func (t *scriptT) Fatal(args ...any) {
	t.Log(args...)
	t.FailNow()
}

func (t *scriptT) FailNow() {
	t.failed = true
	runtime.Goexit()
}

func (t *scriptT) Log(args ...any) { fmt.Fprintln(&t.log, args...) }
func (t *scriptT) Verbose() bool   { return t.verbose }
func (t *scriptT) Parallel()       {}

// Run calls f in a goroutine, and returns when that has ended.
func (t *scriptT) Run(_ string, f func(testscript.T)) {
	child := &scriptT{verbose: t.verbose}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(child)
	}()
	<-ended
	t.log.WriteString(child.log.String())
	t.failed = t.failed || child.failed
	t.skipped = t.skipped || child.skipped
}

// excused describes the pauses of the machine that may have made the script fail. It returns ""
// if there were none, or if a rule is broken that holds on any machine.
func (w *world) excused() string {
	described := excuse(w.meter.Between(w.doubtful(), boottime.Now()), w.agents().Heartbeat)
	if described != "" && w.brokenSoon() {
		return ""
	}
	return described
}

// excuse describes the pauses if one lasts at least a heartbeat. Such a pause stops agents and
// packets for so long that it looks like a fault for which no script asked. Leases leave room
// for shorter pauses.
func excuse(hiccups []hiccup.Hiccup, heartbeat time.Duration) string {
	if _, longest := hiccup.Total(hiccups); longest < heartbeat {
		return ""
	}
	return hiccup.Describe(hiccups)
}

// reportHiccups adds the pauses of the machine to a verbose transcript.
func (w *world) reportHiccups() {
	if hiccups := w.meter.Between(w.began, boottime.Now()); w.o.Verbose && len(hiccups) > 0 {
		w.t.Log(hiccup.Describe(hiccups))
	}
}

// doubtful returns the instant from which on a pause may have caused the failure. It is a lease
// before the mark or the last act, whichever is earlier; without a mark, before the script's start.
func (w *world) doubtful() election.Instant {
	from := w.began
	if w.marked != 0 {
		from = min(w.marked, w.acted)
	}
	return from.Add(-w.agents().Lease)
}

// agents is the configuration that all agents have in common.
func (w *world) agents() settings.Config { return w.lab.Cluster.Hosts()[0].Config() }

// brokenSoon waits for the length of a lease, and then reports whether a rule is broken: by then, a
// leader that leads for too long overlaps with its successor.
func (w *world) brokenSoon() bool {
	_ = observe.Sleep(w.ctx, w.agents().Lease+deliverySlack)
	w.settle()
	return w.broken()
}

// broken reports whether two led at once, a term did not rise, or an agent panicked.
func (w *world) broken() bool {
	crashed := slices.ContainsFunc(w.lab.Exits(), panicked)
	if crashed || !w.config.Quorum {
		return crashed
	}
	overlaps, err := w.overlaps("")
	falls, _, _ := termRises(w, "", "")
	return err != nil || len(overlaps) > 0 || falls > 0
}

// panicked reports whether an agent ended with status 2, the exit status of a Go program that panics.
func panicked(e lab.Exit) bool { return strings.Contains(e.How, "exit status 2") }
