package mutants

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

type Verdict string

const (
	Caught      Verdict = "caught"
	TimedOut    Verdict = "timeout"          // caught: a test hung
	Survived    Verdict = "SURVIVED"         // every test passed
	NoMatch     Verdict = "DOES NOT APPLY"   // the code has changed since the mutant was written
	NoBuild     Verdict = "DOES NOT COMPILE" // which shows nothing about the tests
	Interrupted Verdict = "interrupted"
)

type Outcome struct {
	Mutant  Mutant
	Verdict Verdict
	Package string // the package whose test failed
	Test    string // the first test that failed; empty if the package failed as a whole
	Took    time.Duration
	Detail  string // output of the test or the compiler
}

// Noticed reports whether a test failed, as it should.
func (o Outcome) Noticed() bool { return o.Verdict == Caught || o.Verdict == TimedOut }

type trial struct {
	module  module
	suite   []stage
	limit   time.Duration // for the tests of one package
	end     time.Time     // begin no mutant after it, if Options.For is above 0
	scratch string        // a folder of its own
}

func (t trial) run(ctx context.Context, m Mutant) Outcome {
	began := time.Now()
	o := t.judge(ctx, m)
	o.Mutant, o.Took = m, time.Since(began)
	if ctx.Err() != nil {
		o.Verdict = Interrupted
	}
	return o
}

func (t trial) judge(ctx context.Context, m Mutant) Outcome {
	files, err := m.Apply(os.DirFS(t.module.root))
	if err != nil {
		return Outcome{Verdict: NoMatch, Detail: err.Error()}
	}
	overlay, err := t.overlay(files)
	if err != nil {
		return Outcome{Verdict: NoMatch, Detail: err.Error()}
	}
	for _, s := range t.ordered(m) {
		if !s.sees(m) {
			continue
		}
		if o := t.test(ctx, s, overlay); o.Verdict != Survived {
			return o
		}
	}
	return Outcome{Verdict: Survived}
}

// ordered returns the suite, and puts the package that should notice the mutant first: most
// probably the others need not be run.
func (t trial) ordered(m Mutant) []stage {
	suite := slices.Clone(t.suite)
	if i := slices.IndexFunc(suite, func(s stage) bool { return s.pkg == m.Where }); i > 0 {
		suite = slices.Insert(slices.Delete(suite, i, i+1), 0, t.suite[i])
	}
	return suite
}

// overlay writes the changed files to a place where only the go command reads them.
func (t trial) overlay(files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for name, data := range files {
		copied := filepath.Join(t.scratch, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(copied, data, 0o644); err != nil {
			return "", fmt.Errorf("write overlay: %w", err)
		}
		replace[filepath.Join(t.module.root, filepath.FromSlash(name))] = copied
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	file := filepath.Join(t.scratch, "overlay.json")
	return file, wrap.Error(os.WriteFile(file, data, 0o644), "write overlay")
}

// test runs one package's tests on the changed code, up to the first failure.
func (t trial) test(ctx context.Context, s stage, overlay string) Outcome {
	args := []string{"test", "-json", "-failfast", "-vet=off", "-p=1", "-overlay", overlay, "-timeout", t.limit.String(), "-run", s.run, "./" + s.pkg}
	args = slices.Concat(args, []string{"-args"}, s.args)
	if s.rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1s")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.module.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command then ends the tests
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Outcome{Verdict: NoBuild, Detail: err.Error()}
	}
	if err := cmd.Start(); err != nil {
		return Outcome{Verdict: NoBuild, Detail: err.Error()}
	}
	o, readErr := read(out)
	o.Package = s.pkg
	err = cmd.Wait()
	switch {
	case o.Verdict != Survived:
	case err != nil || readErr != nil: // the run failed, but no test failed
		o.Verdict, o.Detail = NoBuild, errors.Join(err, readErr).Error()+"\n"+o.Detail
	}
	return o
}

// event is a line of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action      string
	Test        string
	Output      string
	FailedBuild string
}

// maxDetail bounds how much output of a test or the compiler is kept.
const maxDetail = 4 << 10

func read(r io.Reader) (Outcome, error) {
	o := Outcome{Verdict: Survived}
	var said strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	hung, running := false, ""
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return o, fmt.Errorf("read test events: %w", err)
		}
		if o.Verdict == Survived && said.Len() < maxDetail && !frame(e.Output) {
			said.WriteString(e.Output)
		}
		hung = hung || strings.HasPrefix(e.Output, "panic: test timed out after")
		switch {
		case e.Action == "run":
			running = e.Test
		case e.Action == "build-fail", e.FailedBuild != "":
			o.Verdict = NoBuild
		case e.Action == "fail" && o.Verdict == Survived:
			o.Verdict, o.Test = Caught, e.Test
			if hung {
				o.Verdict, o.Test = TimedOut, running
			}
		}
	}
	o.Detail = strings.TrimSpace(said.String())
	return o, lines.Err()
}

// frame reports whether a line of output shows only which test runs or has passed.
func frame(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS")
}

type stage struct {
	pkg   string          // relative to the module
	run   string          // which tests of the package; empty: all
	args  []string        // arguments of the test binary
	uses  map[string]bool // the packages that its tests depend on, relative to the module
	rapid bool            // its tests use rapid, which must not write into the tree or shrink for long
}

// stages lists the packages whose tests are run: the cheapest first, the simulation last.
func stages(seeds int) []stage {
	return []stage{
		{pkg: "failuredetector"}, {pkg: "bully"}, {pkg: "ring"}, {pkg: "quorum"}, {pkg: "contest"}, {pkg: "roster"}, {pkg: "elector"}, {pkg: "internal/base/codec"},
		{pkg: "internal/base/alarm"}, {pkg: "internal/calendar"}, {pkg: "internal/jobs"}, {pkg: "testbed/jobsim"}, {pkg: "internal/keeper"}, {pkg: "internal/base/boottime"}, {pkg: "internal/base/leasepage"},
		{pkg: "agent/store"}, {pkg: "agent/record"}, {pkg: "internal/act/guard"}, {pkg: "internal/act/hook"}, {pkg: "agent/watch"}, {pkg: "agent/pages"}, {pkg: "agent/access"}, {pkg: "agent/forward"}, {pkg: "internal/base/footprint"}, {pkg: "agent/history"}, {pkg: "agent/serve"}, {pkg: "agent/serve/socket"}, {pkg: "agent/settings"}, {pkg: "agent/loop"}, {pkg: "agent"}, {pkg: "client"}, {pkg: "internal/act"},
		{pkg: "agent/actors/proof"}, {pkg: "agent/actors"}, {pkg: "internal/act/runner"},
		{pkg: "transport/inbox"}, {pkg: "transport"}, {pkg: "membership"}, {pkg: "cmd/doyen"},
		{pkg: "testbed/exhaustive", run: "^TestEvery(Interleaving|OrderOfARosterChange|OrderOfWrites|OrderOfAChangeWithAWord)$", args: []string{"-whole"}},
		{pkg: "testbed/simulation", run: "^TestSimulation$", args: []string{"-seeds", strconv.Itoa(seeds)}},
	}
}

type module struct {
	root string // its folder
	path string // its import path
}

func findModule(ctx context.Context) (module, error) {
	out, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	if err != nil {
		return module{}, fmt.Errorf("find the source tree: %w", err)
	}
	name, root, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return module{root: root, path: name}, nil
}

// resolve finds the packages on which each stage's tests depend: tests that do not depend on a
// changed package need not run.
func (m module) resolve(ctx context.Context, all []stage) error {
	args := []string{"list", "-test", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`}
	args = append(args, each.Of(all, func(s stage) string { return "./" + s.pkg })...)
	out, err := output(ctx, m.root, "go", args...)
	if err != nil {
		return fmt.Errorf("find what the tests depend on: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, isTest := strings.CutSuffix(fields[0], ".test")
		i := slices.IndexFunc(all, func(s stage) bool { return m.path+"/"+s.pkg == name })
		if !isTest || i < 0 {
			continue
		}
		all[i].uses = map[string]bool{}
		for _, dep := range fields[1:] {
			all[i].rapid = all[i].rapid || dep == "pgregory.net/rapid"
			if own, ok := strings.CutPrefix(dep, m.path+"/"); ok {
				all[i].uses[own] = true
			}
		}
	}
	return nil
}

// sees reports whether the stage's tests depend on a package that the mutant changes.
func (s stage) sees(m Mutant) bool {
	return slices.ContainsFunc(m.Edits, func(e Edit) bool { return s.uses[e.Package] })
}

// baseline runs the stages without any change. Results of stages without arguments of their own
// may come from the go command's cache.
func (m module) baseline(ctx context.Context, all []stage) error {
	plain := []string{"test"}
	for _, s := range all {
		if s.run == "" && s.args == nil {
			plain = append(plain, "./"+s.pkg)
			continue
		}
		if _, err := output(ctx, m.root, "go", slices.Concat([]string{"test", "-run", s.run, "./" + s.pkg, "-args"}, s.args)...); err != nil {
			return fmt.Errorf("run the suite without any change: %w", err)
		}
	}
	if len(plain) == 1 {
		return nil
	}
	_, err := output(ctx, m.root, "go", plain...)
	return wrap.Error(err, "run the suite without any change")
}

// order puts mutants first whose packages have changed since a commit. The order within both
// parts depends on the newest commit, so after each commit other mutants come first.
func (m module) order(ctx context.Context, all []Mutant, since string) error {
	head, err := output(ctx, m.root, "git", "rev-parse", "HEAD")
	if err != nil {
		return fmt.Errorf("find the newest commit: %w", err)
	}
	var changed []byte
	if since != "" {
		if changed, err = output(ctx, m.root, "git", "diff", "--name-only", since, "--"); err != nil {
			return fmt.Errorf("find what has changed: %w", err)
		}
	}
	folders := map[string]bool{}
	for name := range strings.Lines(string(changed)) {
		folders[path.Dir(strings.TrimSpace(name))] = true
		folders[strings.TrimSpace(name)] = true
	}
	place := func(x Mutant) string {
		sum := sha256.Sum256([]byte(string(head) + x.Name))
		if folders[x.Where] || folders[Folder+"/"+x.Name+extension] || slices.ContainsFunc(x.Edits, func(e Edit) bool { return folders[e.Package] }) {
			return "changed" + string(sum[:])
		}
		return "other" + string(sum[:])
	}
	slices.SortFunc(all, func(x, y Mutant) int { return cmp.Compare(place(x), place(y)) })
	return nil
}

// output runs a command and returns its standard output. The error contains all output.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.FromSlash(dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		said := bytes.TrimSpace(append(out, stderr.Bytes()...))
		return nil, errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args[:min(2, len(args))], " "), err), errors.New(string(said)))
	}
	return out, nil
}
