package main

import (
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
)

// runHealthFlags are the flags by which `doyen run` learns whether CMD should lead here.
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
