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
	"github.com/doyen-election/doyen/internal/base/wrap"
)

type Program interface {
	// Command returns a command that runs an agent, not yet started. The configuration is
	// complete. The command may keep files in dir, which exists and is this agent's own.
	Command(c settings.Config, dir string) (*exec.Cmd, error)
}

// Binary is the product: the executable of cmd/doyen.
type Binary struct{ Path string }

// Command runs `doyen agent` with a configuration file.
func (b Binary) Command(c settings.Config, dir string) (*exec.Cmd, error) {
	path := filepath.Join(dir, "config.yaml")
	var text bytes.Buffer
	if err := c.Fprint(&text, nil); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
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
	return path, build(ctx, nil, "run", "-exec", copyTo(path), command)
}

// copyTo returns the command that `go run` runs in place of the program: it copies the program to path.
func copyTo(path string) string { return `sh -c 'cp "$0" "` + path + `"'` }

// BuildShipped builds the command as docs/operations.md describes for an installation: stripped,
// static, without unused code. It shares no compiled package with Build.
func BuildShipped(ctx context.Context, dir, command string) (string, error) {
	path := filepath.Join(dir, filepath.Base(command))
	return path, build(ctx, []string{"CGO_ENABLED=0"}, "build", "-o", path, "-trimpath", "-tags", "nethttpomithttp2,urfave_cli_no_docs", "-ldflags", "-s -w", command)
}

func build(ctx context.Context, environment []string, args ...string) error {
	return wrap.Error(run(ctx, "", environment, "go", args...), "build %s, with a working directory in the source tree", args[len(args)-1])
}

// run runs a command in a directory, with these variables besides its environment. An error has its output.
func run(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
