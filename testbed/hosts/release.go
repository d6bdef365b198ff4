package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// Former is the version of the newest release. This version must work together with it.
const Former = "0.3.0"

// formerCommit is the commit from which that release was built.
const formerCommit = "0b1019fdbaabe7aa8941d4028864437e2643195a"

// formerLacks are the settings that the release does not know.
var formerLacks = []string{"act", "act-user", "hook-failures"}

// FindFormer returns the root of the source tree, or an error if it lacks that release.
func FindFormer(ctx context.Context) (root string, err error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: this is not a git repository: %w", Former, err)
	}
	root = strings.TrimSpace(string(out))
	if err := exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", formerCommit+"^{commit}").Run(); err != nil {
		return "", fmt.Errorf("find the source of %s: the history here has no commit %.12s: %w", Former, formerCommit, err)
	}
	return root, nil
}

// BuildFormer builds the product of that release, from its commit, into dir.
func BuildFormer(ctx context.Context, dir string) (Binary, error) {
	root, err := FindFormer(ctx)
	if err != nil {
		return Binary{}, err
	}
	source := filepath.Join(dir, "source-"+Former)
	if err := os.MkdirAll(source, 0o700); err != nil {
		return Binary{}, err
	}
	defer os.RemoveAll(source)
	archive := exec.CommandContext(ctx, "git", "-C", root, "archive", formerCommit)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", source)
	var failed bytes.Buffer
	archive.Stderr, unpack.Stderr = &failed, &failed
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return Binary{}, err
	}
	if err := errors.Join(archive.Start(), unpack.Run(), archive.Wait()); err != nil {
		return Binary{}, fmt.Errorf("unpack %s: %w\n%s", Former, err, &failed)
	}
	path := filepath.Join(dir, "doyen-"+Former)
	// With trimmed paths, the build cache for one directory also serves others.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./cmd/doyen")
	build.Dir, build.Env = source, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return Binary{}, fmt.Errorf("build %s: %w\n%s", Former, err, bytes.TrimSpace(out))
	}
	return Binary{Path: path, Lacks: formerLacks}, nil
}

// Install copies a program file to Program. The host runs it from its next start on.
func (h *Host) Install(b Binary) (election.Instant, error) {
	at := boottime.Now()
	own := h.Program()
	if err := replace(b.Path, own); err != nil {
		return 0, fmt.Errorf("install %s on %s: %w", b.Path, h.Name(), err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.program = Binary{Path: own, Lacks: b.Lacks}
	return at, nil
}

// Program is the path to which Install copies the program file.
func (h *Host) Program() string { return filepath.Join(h.dir, "doyen") }

// LoseProgram removes the installed program file, so that nothing can be started from it.
func (h *Host) LoseProgram() (election.Instant, error) {
	at := boottime.Now()
	if err := os.Remove(h.Program()); err != nil {
		return 0, fmt.Errorf("remove the program of %s: %w; install one first", h.Name(), err)
	}
	return at, nil
}

// replace replaces a file by a copy of another. A process that runs the old file goes on.
func replace(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	fresh := to + ".new"
	out, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, to)
}

// lines removes the settings that the program does not know.
func (b Binary) lines(config []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(config) {
		key, _, _ := bytes.Cut(line, []byte(":"))
		lacks := false
		for _, name := range b.Lacks {
			lacks = lacks || string(key) == name
		}
		if !lacks {
			kept = append(kept, line...)
		}
	}
	return kept
}
