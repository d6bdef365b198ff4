package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type Options struct {
	// Binary is the product, which is the agent and the `doyen` of scripts.
	Binary hosts.Binary
	// Actor is an executable whose main function calls actor.Serve first: what
	// `program` and `run` start. "" is this very executable.
	Actor string
	// Long makes the condition [long] true: scripts then last as long as their
	// names promise.
	Long bool
	// Loopback keeps the agents on the loopback interface even where they could
	// have networks of their own. The condition [network] is false there.
	Loopback bool
	// Seed is what random faults of the network follow from.
	Seed uint64
	// Verbose keeps the whole transcript of a script that passes.
	Verbose bool
	// OnLab, if not nil, is called with the cluster of each play before its agents
	// start.
	OnLab func(*lab.Lab)
	// OnFault, if not nil, is called as lab.Options says.
	OnFault func(f observe.Fault, over bool)
	// Undecided is called with each play that decides nothing and is followed by
	// another; nil is fine.
	Undecided func(Result)
	// Logs is the directory below which the logs of a failed script are kept; ""
	// is the system's temporary one.
	Logs string
}

type Result struct {
	Name    string
	Passed  bool
	Skipped bool // by its own `skip`
	Took    time.Duration
	Log     string // the transcript; of a script that passed, its headings only
	// Recording is what was seen, nil if no host was laid out.
	Recording *observe.Recording
	// Excuse reports that the machine was paused while a script was played that
	// failed, for so long that it may have failed for that; "" if not.
	Excuse string
}

// maxPlays is how often a script is played until one play decides.
const maxPlays = 5

// Run plays one script. What goes wrong in it is in the result; so is ctx's end,
// which fails it. A play that fails while the machine was paused decides nothing,
// unless what must hold on any machine did not: o.Undecided is called, and the
// script is played again. It fails if none of five plays decides.
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
	if o.Actor == "" {
		executable, err := os.Executable()
		if err != nil {
			return Result{}, fmt.Errorf("find this executable: %w", err)
		}
		o.Actor = executable
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

// transcript drops the environment that testscript shows first.
func transcript(log string) string {
	if strings.HasPrefix(log, "WORK=") {
		_, log, _ = strings.Cut(log, "\n\n")
	}
	return log
}

// scriptT is what testscript plays a script on: one after another, each in a
// goroutine that a failure ends.
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

// Run runs f in a goroutine of its own, and returns when it ended.
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
