package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
)

const (
	longestGrace = 1000 * time.Hour // the longest --grace, --timeout, --late and --jobs, far longer than any lease
	// maxMeta bounds a program's description of itself, in bytes.
	maxMeta  = 256
	runUsage = "write: doyen run ELECTION -- CMD ARG…"
)

func runFlags() []cli.Flag {
	return append([]cli.Flag{
		truthFlag("try", "like --once, but exit with 75 at once if another candidate leads"),
		truthFlag("once", "run CMD once: when it ends, by itself or with the leadership, withdraw the candidacy and exit with CMD's status"),
		&cli.StringFlag{Name: "restart", Usage: "`WHEN` to start CMD again after it ended by itself: always, on-failure, or never, which is the same as --once", DefaultText: runner.RestartAlways},
	}, append(commandFlags(), runHealthFlags()...)...)
}

// commandFlags are the flags of run, once and cron about the command to start.
func commandFlags() []cli.Flag {
	return []cli.Flag{
		durationFlag("grace", "`TIME` between SIGTERM and SIGKILL; less if the lease ends sooner", 10*time.Second, 0, longestGrace),
		durationFlag("timeout", "`TIME` that one run of CMD may take; it is then ended and has failed with 124 (default: any)", 0, 0, longestGrace),
		truthFlag("shell", "run CMD as a command line of /bin/sh, with each ARG as its $1, $2, …"),
		integerFlag("priority", "`NUMBER` of this candidacy (default: the agent's)", -1, 0, election.MaxPriority),
		&cli.StringFlag{Name: "meta", Usage: "`TEXT` shown with the candidacy, and with the leader on every host, so no secrets (default: the name of CMD's program)"},
		truthFlag("wait", "if the agent can't be reached at the start, wait for it"),
		truthFlag("quiet", "print no messages about what happens"),
	}
}

func runRun(i *invocation) error {
	config, err := commandConfig(i, runUsage, 1)
	if err = cmp.Or(err, restart(i, &config), runHealth(i, &config)); err != nil {
		return err
	}
	config.Try = i.Bool("try")
	return i.carryOut(config)
}

// carryOut runs the command, and returns the exit status as a silentExit.
func (i *invocation) carryOut(config runner.Config) error {
	if i.Context.Context.Err() != nil {
		if config.Job != nil && config.Status {
			return silentExit{128 + int(syscall.SIGTERM)} // for once, 0 would mean that the job has finished
		}
		return silentExit{exitOK} // a signal came before the command was started
	}
	// The context ends at the first signal, but does not show which one it was. The command must get the same
	// signal, so this program catches signals itself.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passed()...)
	defer signal.Stop(signals)
	defer outliveReaders()()
	config.Signals = signals
	status, err := runner.Run(context.WithoutCancel(i.Context.Context), config)
	if cannot, ok := errors.AsType[*runner.CommandError](err); ok {
		return &failure{code: cannot.Status, what: i.Command.Name, err: err, hint: "name a program in PATH, or give its path; with --shell, CMD is a command line of the shell"}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", i.Command.Name, err)
	}
	return silentExit{status}
}

// passed returns the signals to pass on to CMD. It omits a signal that this process ignores, such as SIGHUP
// under nohup, since CMD ignores it too.
func passed() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
	return slices.DeleteFunc(all, signal.Ignored)
}

// commandConfig reads what run, once and cron have in common: the flags, the election, which is the first of n
// arguments, and the command after --.
func commandConfig(i *invocation, write string, n int) (runner.Config, error) {
	verb, args := i.Command.Name, i.Args().Slice()
	c := runner.Config{Restart: runner.RestartAlways, Shell: i.Bool("shell"), Wait: i.Bool("wait"), Grace: i.duration("grace"), Timeout: i.duration("timeout")}
	switch dashes := slices.Index(args, "--"); {
	case len(args) == 0 || dashes == 0:
		return c, usage(write, "%s: %s is missing", verb, strings.Fields(strings.TrimPrefix(write, "write: doyen "+verb))[0])
	case verb == "run" && !election.ValidName(args[0]):
		return c, usage(nameRule, "%s: %q is not a valid election name", verb, args[0])
	case dashes != n:
		return c, usage(write, "%s: write the election before --, and the command after it", verb)
	case len(args) == n+1 || args[n+1] == "":
		return c, usage(write, "%s: the command after -- is missing", verb)
	}
	c.Election, c.Command = args[0], args[n+1:]
	c.Request = api.CampaignRequest{Meta: about(i, c)}
	if len(c.Request.Meta) > maxMeta {
		return c, usage("shorten it", "%s: --meta has %d bytes, at most %d are allowed", verb, len(c.Request.Meta), maxMeta)
	}
	if priority := i.integer("priority"); i.IsSet("priority") {
		c.Request.Priority = &priority
	}
	c.Client = i.client()
	c.Client.Raw = nil
	if !i.Bool("quiet") {
		c.Say = func(line string) { fmt.Fprintf(i.stderr, "doyen: %s\n", printable(line)) }
	}
	return c, nil
}

// about is the text shown with the candidacy. By default it is only the program's name: arguments and a shell
// line may contain passwords.
func about(i *invocation, c runner.Config) string {
	switch {
	case i.IsSet("meta"):
		return i.String("meta")
	case c.Shell:
		return "sh"
	}
	name := filepath.Base(c.Command[0])
	return strings.ToValidUTF8(name[:min(len(name), maxMeta)], "?")
}

// restart combines --once, --try and --restart, which all set when the command starts again.
func restart(i *invocation, c *runner.Config) error {
	once := i.Bool("once") || i.Bool("try")
	c.Restart = i.String("restart")
	switch {
	case c.Restart == "" && once:
		c.Restart = runner.RestartNever
	case c.Restart == "":
		c.Restart = runner.RestartAlways
	case c.Restart != runner.RestartAlways && c.Restart != runner.RestartOnFailure && c.Restart != runner.RestartNever:
		return usage("use always, on-failure or never", "run: unknown --restart %q", c.Restart)
	case once && c.Restart != runner.RestartNever:
		return usage("omit one of them", "run: --%s and --restart %s contradict each other", map[bool]string{true: "try", false: "once"}[i.Bool("try")], c.Restart)
	}
	c.Status = c.Restart == runner.RestartNever
	return nil
}

// runHealthFlags are the flags by which this host's health ends the candidacy of `doyen run`.
func runHealthFlags() []cli.Flag {
	duration := func(name, usage string, standard time.Duration) cli.Flag {
		return durationFlag(name, usage, standard, health.Shortest, health.Longest)
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "check", Usage: "`CMD` of the shell that shows this host's health: while it fails, this is not a candidate, and what leads is stopped and handed over (default: none)"},
		duration("check-every", "`TIME` from one check to the next", health.DefaultEvery),
		duration("check-timeout", "`TIME` after which a check is killed and has failed", health.DefaultEvery),
		integerFlag("check-fall", "`NUMBER` of checks that fail in a row until the host is unhealthy", health.DefaultFall, 1, health.MostFallOrRise),
		integerFlag("check-rise", "`NUMBER` of checks that succeed in a row until it is healthy again", health.DefaultRise, 1, health.MostFallOrRise),
		truthFlag("ready", "CMD leads only once it has sent READY=1 to its NOTIFY_SOCKET"),
		duration("ready-timeout", "`TIME` that CMD may take for READY=1, before another host may lead", 90*time.Second),
		duration("watchdog", "`TIME` within which CMD must send WATCHDOG=1 to its NOTIFY_SOCKET, again and again, or another host may lead (default: none)", 0),
	}
}

func runHealth(i *invocation, c *runner.Config) error {
	for _, flag := range []string{"check-every", "check-timeout", "check-fall", "check-rise"} {
		if i.IsSet(flag) && i.String("check") == "" {
			return usage("add --check CMD", "run: --%s without --check", flag)
		}
	}
	c.Check = health.Check{Command: i.String("check"), Every: i.duration("check-every"), Timeout: i.duration("check-timeout"), Fall: i.integer("check-fall"), Rise: i.integer("check-rise")}
	c.Ready, c.ReadyIn, c.Watchdog = i.Bool("ready"), i.duration("ready-timeout"), i.duration("watchdog")
	if !c.Ready && i.IsSet("ready-timeout") {
		return usage("add --ready", "run: --ready-timeout without --ready")
	}
	if (c.Ready || c.Watchdog > 0) && runtime.GOOS != "linux" {
		return usage("use --check", "run: --ready and --watchdog work on Linux only")
	}
	return nil
}
