package hosts

import (
	"bytes"
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
	if err := c.Fprint(&text); err != nil {
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
