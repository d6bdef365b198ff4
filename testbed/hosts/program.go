package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/doyen-election/doyen/agent/settings"
)

type Program interface {
	// Command returns a command that runs an agent, not yet started. The configuration is
	// complete. The command may keep files in dir, which exists and is this agent's own.
	Command(c settings.Config, dir string) (*exec.Cmd, error)
}

// Binary is the product: the executable of cmd/doyen.
type Binary struct {
	Path  string
	Lacks []string // settings that this build does not know
}

// Command runs `doyen agent` with a configuration file.
func (b Binary) Command(c settings.Config, dir string) (*exec.Cmd, error) {
	path := filepath.Join(dir, "config.yaml")
	var text bytes.Buffer
	if err := c.Fprint(&text, nil); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, b.lines(text.Bytes()), 0o600); err != nil {
		return nil, fmt.Errorf("write a configuration file: %w", err)
	}
	return exec.Command(b.Path, "agent", "--config", path), nil
}

// environment is the testbed's environment without the variables that reconfigure an agent.
func environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DOYEN_") && !strings.HasPrefix(v, "NOTIFY_SOCKET=") {
			kept = append(kept, v)
		}
	}
	return kept
}

const Product = "github.com/doyen-election/doyen/cmd/doyen"

// Build builds a command of this module into dir and returns its path. It uses `go run`, which
// keeps what it has linked, so that the tests of several packages link a command once; `go build`
// links each time. Build needs the go command and a working directory inside the source tree.
func Build(ctx context.Context, dir, command string) (string, error) {
	path := filepath.Join(dir, filepath.Base(command))
	return path, goCommand(ctx, os.Environ(), "run", "-exec", copyTo(path), command)
}

// copyTo returns the command that `go run` runs in place of the program: it copies the program to path.
func copyTo(path string) string { return `sh -c 'cp "$0" "` + path + `"'` }

// BuildShipped builds the command as docs/operations.md describes for an installation: stripped,
// static, without unused code. It shares no compiled package with Build.
func BuildShipped(ctx context.Context, dir, command string) (string, error) {
	path := filepath.Join(dir, filepath.Base(command))
	return path, goCommand(ctx, append(os.Environ(), "CGO_ENABLED=0"),
		"build", "-o", path, "-trimpath", "-tags", "nethttpomithttp2,urfave_cli_no_docs", "-ldflags", "-s -w", command)
}

func goCommand(ctx context.Context, environment []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w; this takes the go command and a working directory in the source tree\n%s", args[len(args)-1], err, bytes.TrimSpace(out))
	}
	return nil
}
