package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/health"
)

// When to start the command again, if it ended by itself while this host leads.
const (
	RestartAlways    = "always"
	RestartOnFailure = "on-failure" // when its status is not 0
	// RestartNever ends Run when the command ends, also if it was ended because the
	// lead was lost: Run starts the command at most once.
	RestartNever = "never"
)

// The statuses of shells for a command that can't be run.
const (
	statusNotRunnable = 126
	statusNotFound    = 127
)

const shell = "/bin/sh"

// Config is what to run, and how.
type Config struct {
	// Client reaches the agent of this host.
	Client   *client.Client
	Election string
	Request  api.CampaignRequest
	// Command is the program and its arguments. With Shell it is a line for /bin/sh,
	// and the arguments that the line finds in $1, $2 and so on.
	Command []string
	Shell   bool
	// Grace is the time between the first signal and SIGKILL; the end of the lease
	// cuts it short.
	Grace   time.Duration
	Restart string
	// Status makes Run's status the command's own, also when a signal ends it.
	Status bool
	// Wait has Run wait for an agent that can't be reached at the start.
	Wait bool
	// Check, if it has a command, decides whether this host may be a candidate. While it fails,
	// Run is not one, and hands over what it leads.
	Check health.Check
	// Ready has the command act only once it has sent READY=1 to its NOTIFY_SOCKET. If it has
	// not done so within ReadyIn, Run hands over.
	Ready   bool
	ReadyIn time.Duration
	// Watchdog, if above 0, is for how long the command that acts may send no WATCHDOG=1 before
	// Run hands over.
	Watchdog time.Duration
	// Signals are passed on to the command or end it, see Run.
	Signals <-chan os.Signal
	// Say, if not nil, gets a line about each thing that happens.
	Say func(line string)

	path  string // of the program
	lines chan<- string
}

// CommandError means that the command can't be run.
type CommandError struct {
	Status int // 126 or 127
	Err    error
}

func (e *CommandError) Error() string { return e.Err.Error() }
func (e *CommandError) Unwrap() error { return e.Err }

// resolve checks the configuration and finds the program, before this host campaigns: a
// mistyped command must not take the lead.
func (c Config) resolve() (Config, error) {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return c, &CommandError{statusNotFound, errors.New("the command is missing")}
	case c.Restart != RestartAlways && c.Restart != RestartOnFailure && c.Restart != RestartNever:
		return c, fmt.Errorf("unknown restart %q", c.Restart)
	}
	name := c.Command[0]
	if c.Shell {
		name = shell
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return c, &CommandError{lookStatus(err), fmt.Errorf("find the command: %w", err)}
	}
	c.path = path
	if c.Check.Command != "" {
		c.Check = c.Check.Resolved()
	}
	return c, nil
}

func lookStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotRunnable
}

// args is the command's argument list, the program's name included.
func (c Config) args() []string {
	if !c.Shell {
		return c.Command
	}
	return append([]string{shell, "-c", c.Command[0], shell}, c.Command[1:]...)
}

// environment is this process's own, with the variables for the command except those
// that each start has.
func environment(c Config) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "DOYEN_ELECTION", name == "DOYEN_SOCKET", name == "DOYEN_TERM":
		case c.notifies() && slices.Contains(notifyVariables, name):
		default:
			env = append(env, entry)
		}
	}
	socket, err := filepath.Abs(c.Client.Socket()) // the command may change its directory
	if err != nil {
		socket = c.Client.Socket()
	}
	return append(env, "DOYEN_ELECTION="+c.Election, "DOYEN_SOCKET="+socket)
}

// name is what a line for people calls the command.
func (c Config) name() string {
	if c.Shell {
		return "the command"
	}
	return filepath.Base(c.Command[0])
}
