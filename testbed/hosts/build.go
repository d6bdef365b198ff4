package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const Product = "github.com/doyen-election/doyen/cmd/doyen"

// Build builds a command of this module into dir and returns its path. It builds as `go run`
// and `go test` do, to share what these have compiled. It needs the go command and a working
// directory inside the source tree.
func Build(ctx context.Context, dir, command string) (string, error) {
	return build(ctx, dir, command, os.Environ())
}

// BuildShipped builds the command as docs/operations.md says for an installation: stripped,
// static, without code that it never uses. It shares no compiled package with Build.
func BuildShipped(ctx context.Context, dir, command string) (string, error) {
	return build(ctx, dir, command, append(os.Environ(), "CGO_ENABLED=0"),
		"-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w")
}

func build(ctx context.Context, dir, command string, environment []string, flags ...string) (string, error) {
	path := filepath.Join(dir, filepath.Base(command))
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", path}, flags, []string{command})...)
	cmd.Env = environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w; this takes the go command and a working directory in the source tree\n%s", command, err, bytes.TrimSpace(out))
	}
	return path, nil
}
