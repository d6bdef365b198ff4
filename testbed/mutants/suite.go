package mutants

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type stage struct {
	pkg   string          // relative to the module
	run   string          // which tests of the package; empty: all
	args  []string        // arguments of the test binary
	uses  map[string]bool // the packages that its tests depend on, relative to the module
	rapid bool            // its tests use rapid: forbid it to write into the tree and to shrink for long
}

// stages lists the packages whose tests are run: the cheapest first, the simulation last.
func stages(seeds int) []stage {
	return []stage{
		{pkg: "failuredetector"}, {pkg: "bully"}, {pkg: "ring"}, {pkg: "quorum"}, {pkg: "contest"}, {pkg: "elector"}, {pkg: "internal/base/codec"},
		{pkg: "internal/base/alarm"}, {pkg: "internal/keeper"}, {pkg: "internal/base/boottime"}, {pkg: "internal/base/leasepage"},
		{pkg: "agent/store"}, {pkg: "agent/record"}, {pkg: "internal/act/guard"}, {pkg: "internal/act/hook"}, {pkg: "agent/watch"}, {pkg: "agent/pages"}, {pkg: "agent/access"}, {pkg: "internal/base/footprint"}, {pkg: "agent/serve"}, {pkg: "agent/serve/socket"}, {pkg: "agent/settings"}, {pkg: "agent/loop"}, {pkg: "agent"}, {pkg: "client"}, {pkg: "internal/act"},
		{pkg: "agent/actors/proof"}, {pkg: "agent/actors"}, {pkg: "internal/act/runner"},
		{pkg: "transport/inbox"}, {pkg: "transport"}, {pkg: "membership"}, {pkg: "cmd/doyen"},
		{pkg: "testbed/exhaustive", run: "^TestEvery(Interleaving|OrderOfARosterChange)$"},
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
	for _, s := range all {
		args = append(args, "./"+s.pkg)
	}
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

// baseline runs the stages without any change. Results of tests that are run in the ordinary
// way may come from the go command's cache.
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
	if _, err := output(ctx, m.root, "go", plain...); err != nil {
		return fmt.Errorf("run the suite without any change: %w", err)
	}
	return nil
}

// order puts those first of whose packages files have changed since a commit, and within
// each part lets the newest commit decide: others are first after each.
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
