package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent"
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

// Self is this very executable, run again as an agent: no second build is needed. Its main
// function must call ServeAgent before anything else.
type Self struct{}

// selfArgument makes this executable an agent. It is not meant for people.
const selfArgument = "agent-of-testbed"

// Command runs this executable with the hidden argument and the configuration
// in a file.
func (Self) Command(c settings.Config, dir string) (*exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a configuration: %w", err)
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return nil, fmt.Errorf("write a configuration file: %w", err)
	}
	return exec.Command(executable, selfArgument, path), nil
}

// ServeAgent runs an agent, as `doyen agent` does, if this process was started for that. It
// returns the exit code and true once the agent has ended. Otherwise it returns false at once.
// The process's arguments are args.
func ServeAgent(args []string, stderr io.Writer) (code int, served bool) {
	if len(args) != 3 || args[1] != selfArgument {
		return 0, false
	}
	go dieWithParent()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runAgent(ctx, args[2], stderr); err != nil {
		fmt.Fprintf(stderr, "doyen: %v\n", err)
		return 1, true
	}
	return 0, true
}

func runAgent(ctx context.Context, path string, stderr io.Writer) error {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	var c settings.Config
	if err := json.Unmarshal(encoded, &c); err != nil {
		return fmt.Errorf("decode the configuration %s: %w", path, err)
	}
	return agent.Run(ctx, c, agent.Process{}, stderr)
}

// dieWithParent ends this process when the testbed is gone, on systems where the kernel does
// not. The testbed never writes to this process's stdin: reading it ends when the testbed
// does.
func dieWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
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
