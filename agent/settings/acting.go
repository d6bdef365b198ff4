package settings

import (
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
)

// Hooks are the hooks' commands, by election.
func (c Config) Hooks() hook.Commands {
	commands := hook.Commands{Default: c.OnChange, Of: map[election.Name]string{}, Others: c.Elections[EveryOther].OnChange,
		Limit: hook.Limit}
	for name, e := range c.Elections {
		if name != EveryOther && e.OnChange != "" {
			commands.Of[election.Name(name)] = e.OnChange
		}
	}
	return commands
}

// Checks are the health checks, by election.
func (c Config) Checks() map[election.Name]health.Check {
	checks := map[election.Name]health.Check{health.Host: c.HostCheck, election.Default: {Command: c.Check}}
	for name, e := range c.Elections {
		if e.Check.Command != "" {
			checks[election.Name(name)] = e.Check
		}
	}
	maps.DeleteFunc(checks, func(_ election.Name, k health.Check) bool { return k.Command == "" })
	return checks
}

// ActUID returns the number of the user ActUser; nil: ActUser is empty.
func (c Config) ActUID() (*uint32, error) {
	if c.ActUser == "" {
		return nil, nil
	}
	uid, err := access.User(c.ActUser)
	return &uid, err
}

// actsApart reports whether hooks and checks run as another user than this process.
func (c Config) actsApart() bool {
	uid, err := c.ActUID()
	return !c.Act && err == nil && uid != nil && int(*uid) != os.Geteuid()
}

// Acts reports whether doyen act has a hook or a check to run.
func (c Config) Acts() bool { return c.Hooks().Any() || len(c.Checks()) > 0 }

// CheckHere writes a warning if no record can be kept in the configured directory, and a warning about each
// port that the agent can't use.
func (c Config) CheckHere(w io.Writer) {
	for _, line := range c.portsBelow(firstUnprivileged()) {
		fmt.Fprintf(w, "doyen: warning: %s\n", line)
	}
	if c.RecordDir == "" {
		return
	}
	if err := record.Check(c.RecordDir); err != nil {
		fmt.Fprintf(w, "doyen: warning: %v\n", err)
	}
}
