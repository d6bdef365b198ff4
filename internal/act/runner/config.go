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
	"github.com/doyen-election/doyen/internal/jobs"
)

// The values of Config.Restart: when to start the command again if it ended by itself while this host leads.
const (
	RestartAlways    = "always"
	RestartOnFailure = "on-failure" // when its status is not 0
	// RestartNever ends Run when the command ends, even if this host had lost the lead and so had to end it: Run
	// starts the command at most once.
	RestartNever = "never"
)

// The exit statuses of shells for a command that can't be run.
const (
	statusNotRunnable = 126
	statusNotFound    = 127
)

// StatusTimeout is the status of a command that was ended because of Timeout. timeout(1) uses the same one.
const StatusTimeout = 124

// StatusOtherLeads is the status of Run with Try if this host was not elected: EX_TEMPFAIL of sysexits.h.
const StatusOtherLeads = 75

const shell = "/bin/sh"

// Config is the command to run, and how to run it.
type Config struct {
	// Client reaches the agent of this host.
	Client   *client.Client
	Election string
	Request  api.CampaignRequest
	// Command is the program and its arguments. With Shell it is a line for /bin/sh, and then that line's
	// arguments $1, $2 and so on.
	Command []string
	Shell   bool
	// Grace is the time between the first signal and SIGKILL. If the lease ends earlier, SIGKILL is
	// sent earlier.
	Grace   time.Duration
	Restart string
	// Status makes Run return the command's exit status even if a signal has ended Run.
	Status bool
	// Wait makes Run wait if, at the start, the agent can't be reached or answers with a status of 500 or more.
	Wait bool
	// Check, if it has a command, decides whether this host may be a candidate. While it fails, the
	// host is not a candidate, and Run hands over what it leads.
	Check health.Check
	// Ready means that the command acts only once it has sent READY=1 to its NOTIFY_SOCKET. If it
	// does not send that within ReadyIn, Run hands over.
	Ready   bool
	ReadyIn time.Duration
	// Watchdog, if above 0, is the longest time between two WATCHDOG=1 of the acting command. If it is exceeded,
	// Run hands over.
	Watchdog time.Duration
	// Timeout, if above 0, is how long one run of the command may take. Run then ends the command as at the end
	// of a leadership. It counts as failed with StatusTimeout.
	Timeout time.Duration
	// Try ends Run with StatusOtherLeads if another candidate leads, or if nobody is elected within tryFor.
	Try bool
	// Job, if not nil, decides when the command starts while this host leads, and keeps its state in the
	// election's word. Restart has no effect then.
	Job *jobs.Job
	// Signals are passed on to the command, and some also end Run, see Run.
	Signals <-chan os.Signal
	// Say, if not nil, is called with a line about each event.
	Say func(line string)

	path  string // path of the program
	lines chan<- string
}

// CommandError means that the command can't be run.
type CommandError struct {
	Status int // 126 or 127
	Err    error
}

func (e *CommandError) Error() string { return e.Err.Error() }
func (e *CommandError) Unwrap() error { return e.Err }

// resolve checks the configuration and finds the program before this host is a candidate: a host with a
// mistyped command must not lead.
func (c Config) resolve() (Config, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return c, &CommandError{statusNotFound, errors.New("the command is missing")}
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

// args returns the command's argument list, with the program's name first.
func (c Config) args() []string {
	if !c.Shell {
		return c.Command
	}
	return append([]string{shell, "-c", c.Command[0], shell}, c.Command[1:]...)
}

// given are the variables that the command gets only from Run, not from this process's environment.
var given = []string{"DOYEN_ELECTION", "DOYEN_SOCKET", "DOYEN_TERM", "DOYEN_OCCURRENCE", "DOYEN_TRY", "DOYEN_KEY"}

// environment returns what the command inherits from this process's environment, and the variables that Run
// sets to the same value at each start.
func environment(c Config) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case slices.Contains(given, name):
		case c.notifies() && slices.Contains(notifyVariables, name):
		default:
			env = append(env, entry)
		}
	}
	socket, err := filepath.Abs(c.Client.Socket()) // absolute, since the command may change its working directory
	if err != nil {
		socket = c.Client.Socket()
	}
	return append(env, "DOYEN_ELECTION="+c.Election, "DOYEN_SOCKET="+socket)
}

// name returns the command's name for lines that people read.
func (c Config) name() string {
	if c.Shell {
		return "the command"
	}
	return filepath.Base(c.Command[0])
}
