package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Former is the version of the newest release. This version must work together with it.
const Former = "0.4.0"

// formerCommit is the commit from which the release Former was built.
const formerCommit = "07fedb5c8aeeef110e9934a625231c3769e647de"

// FindFormer returns the root of the source tree, or an error if the repository lacks the release Former.
func FindFormer(ctx context.Context) (root string, err error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: this is not a git repository: %w", Former, err)
	}
	root = strings.TrimSpace(string(out))
	err = exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", formerCommit+"^{commit}").Run()
	return root, wrap.Error(err, "find the source of %s: the history here has no commit %.12s", Former, formerCommit)
}

// BuildFormer builds the product of the release Former, from its commit, into dir.
func BuildFormer(ctx context.Context, dir string) (b Binary, err error) {
	root, err := FindFormer(ctx)
	if err != nil {
		return Binary{}, err
	}
	source, path := filepath.Join(dir, "source-"+Former), filepath.Join(dir, "doyen-"+Former)
	packed := source + ".tar"
	defer func() { err = errors.Join(err, os.RemoveAll(source), os.RemoveAll(packed)) }()
	if err = os.MkdirAll(source, 0o700); err == nil {
		err = run(ctx, root, nil, "git", "archive", "--output", packed, formerCommit)
	}
	if err == nil {
		err = run(ctx, source, nil, "tar", "-x", "-f", packed)
	}
	if err == nil { // with trimmed paths, a build in another directory can use the same build cache
		err = run(ctx, source, []string{"GOFLAGS=", "GOWORK=off"}, "go", "run", "-trimpath", "-exec", copyTo(path), "./cmd/doyen")
	}
	return Binary{path}, wrap.Error(err, "build %s", Former)
}

func (h *Host) install(b Binary) error {
	if err := replace(b.Path, h.Program()); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.program = Binary{h.Program()}
	return nil
}

// Program is the path to which Install copies the program file.
func (h *Host) Program() string { return filepath.Join(h.dir, "doyen") }

// replace replaces a file by a copy of another. A process that runs the old file goes on.
func replace(from, to string) error {
	program, err := os.ReadFile(from)
	fresh := to + ".new"
	if err == nil {
		err = os.WriteFile(fresh, program, 0o755)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	return err
}
