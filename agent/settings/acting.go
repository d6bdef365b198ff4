package settings

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
)

// Hooks are the commands to run, by election.
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

// ActUID returns the user of ActUser; nil: it is empty.
func (c Config) ActUID() (*uint32, error) {
	if c.ActUser == "" {
		return nil, nil
	}
	number, err := strconv.ParseUint(c.ActUser, 10, 32)
	if err != nil {
		found, err := user.Lookup(c.ActUser)
		if err != nil {
			return nil, err
		}
		if number, err = strconv.ParseUint(found.Uid, 10, 32); err != nil {
			return nil, err
		}
	}
	uid := uint32(number)
	return &uid, nil
}

// Acts reports whether doyen act has something to do.
func (c Config) Acts() bool { return c.Hooks().Any() || len(c.Checks()) > 0 }

// ShellLines are warnings about what root runs and nobody can check: what a line of the shell runs
// depends on more than the files that it names.
func (c Config) ShellLines() (all []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, h := range c.hookLines() {
		if hook.ShellLine(h.line) {
			all = append(all, fmt.Sprintf("%s is a line of the shell, which root runs; from 0.5.0 on that is refused: give the absolute path of a program and its arguments, such as a script with this line", h.flag))
		}
	}
	return all
}

// CheckHere writes warnings: if no record can be kept in the directory that was given for it, about
// hooks and checks that root should not run, and about ports that the agent could not use.
func (c Config) CheckHere(w io.Writer) {
	for _, line := range slices.Concat(c.ShellLines(), c.portsBelow(firstUnprivileged())) {
		fmt.Fprintf(w, "doyen: warning: %s\n", line)
	}
	if c.RecordDir == "" {
		return
	}
	if err := record.Check(c.RecordDir); err != nil {
		fmt.Fprintf(w, "doyen: warning: %v\n", err)
	}
}
