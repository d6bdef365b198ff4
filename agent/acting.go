package agent

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/api"
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

// needs is for what this host needs a companion.
func (c Config) needs() campaign.Needs {
	hooks := c.Hooks()
	n := campaign.Needs{Hooked: func(name election.Name) bool { return hooks.For(name) != "" }, Named: hooks.Elections()}
	for name := range c.Checks() {
		if name == health.Host {
			name = api.EveryElection
		}
		n.Checked = append(n.Checked, name)
	}
	slices.Sort(n.Checked)
	n.Named = append(n.Named, n.Checked...)
	return n
}

// actUser returns the user of ActUser; nil: it is empty.
func (c Config) actUser() (*uint32, error) {
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

// shellLines are warnings about what root runs and nobody can check: what a line of the shell runs
// depends on more than the files that it names.
func (c Config) shellLines() (all []string) {
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

// given is why a program has given up the lead of the election in which one ended last.
type given struct {
	election election.Name
	why      election.Reason
}

// because is the reason that people see: the check's or the program's, if the candidacy was
// withdrawn for it.
func (l *loop) because(name election.Name, why election.Reason) election.Reason {
	switch unable := l.campaigns.Companions().Unable(name); {
	case why != election.ReasonWithdrawn:
	case l.given.election == name && l.given.why != "":
		return l.given.why
	case unable != "":
		return election.Reason(unable)
	}
	return why
}

// actingWarnings warn about checks that keep this host from being a candidate, hooks that failed,
// and a companion that is missing.
func (l *loop) actingWarnings() (all []api.Warning) {
	where := func(name election.Name) string {
		if name == api.EveryElection {
			return "in any election"
		}
		return "in " + string(name)
	}
	verdicts := l.campaigns.Companions().Verdicts()
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		all = append(all, api.Warning{Code: warnUnhealthy, Message: fmt.Sprintf("this host is not a candidate %s: %s", where(name), verdicts[name])})
	}
	failed := l.campaigns.Companions().Failed()
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, api.Warning{Code: warnHookFailed, Message: fmt.Sprintf(
			"the hook has failed %s: %s; what it should have set up for this leader may be missing: correct it, then run doyen resign %s or doyen reload", where(name), failed[name], name)})
	}
	if l.campaigns.Companions().Lacks() {
		all = append(all, api.Warning{Code: warnActMissing, Message: "doyen act is not connected, so no hook or check of this host runs, and it is not a candidate where the configuration names one: " +
			"the agent's keeper starts doyen act; without a keeper, or with act: false, start it beside the agent (the log of both has the reason if it ended)"})
	}
	return all
}
