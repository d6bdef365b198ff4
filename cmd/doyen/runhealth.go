package main

import (
	"runtime"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
)

// runHealthFlags are the flags by which `doyen run` learns whether CMD should lead here.
func runHealthFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "check", Usage: "`CMD` of the shell that shows this host's health: while it fails, this is not a candidate, and what leads is stopped and handed over (default: none)"},
		&cli.StringFlag{Name: "check-every", Usage: "`TIME` from one check to the next", DefaultText: health.DefaultEvery.String()},
		&cli.StringFlag{Name: "check-timeout", Usage: "`TIME` after which a check is killed and has failed", DefaultText: health.DefaultEvery.String()},
		&cli.StringFlag{Name: "check-fall", Usage: "`NUMBER` of checks that fail in a row until the host is unhealthy", DefaultText: strconv.Itoa(health.DefaultFall)},
		&cli.StringFlag{Name: "check-rise", Usage: "`NUMBER` of checks that succeed in a row until it is healthy again", DefaultText: strconv.Itoa(health.DefaultRise)},
		&cli.BoolFlag{Name: "ready", Usage: "CMD leads only once it has sent READY=1 to its NOTIFY_SOCKET", DisableDefaultText: true},
		&cli.StringFlag{Name: "ready-timeout", Usage: "`TIME` that CMD may take for READY=1, before another host may lead", DefaultText: defaultReady.String()},
		&cli.StringFlag{Name: "watchdog", Usage: "`TIME` within which CMD must send WATCHDOG=1 to its NOTIFY_SOCKET, again and again, or another host may lead (default: none)"},
	}
}

func runHealth(i *invocation, c *runner.Config) (err error) {
	for _, flag := range []string{"check-every", "check-timeout", "check-fall", "check-rise"} {
		if i.String(flag) != "" && i.String("check") == "" {
			return usage("add --check CMD", "run: --%s without --check", flag)
		}
	}
	c.Check = health.Check{Command: i.String("check")}
	c.Ready, c.ReadyIn = i.Bool("ready"), defaultReady
	if !c.Ready && i.String("ready-timeout") != "" {
		return usage("add --ready", "run: --ready-timeout without --ready")
	}
	for _, f := range []struct {
		flag string
		to   *time.Duration
	}{{"check-every", &c.Check.Every}, {"check-timeout", &c.Check.Timeout}, {"ready-timeout", &c.ReadyIn}, {"watchdog", &c.Watchdog}} {
		if *f.to, err = i.duration(f.flag, *f.to, health.Shortest, health.Longest); err != nil {
			return err
		}
	}
	if c.Check.Fall, err = i.integer("check-fall", 0, 1, health.MostFallOrRise); err != nil {
		return err
	}
	if c.Check.Rise, err = i.integer("check-rise", 0, 1, health.MostFallOrRise); err != nil {
		return err
	}
	if (c.Ready || c.Watchdog > 0) && runtime.GOOS != "linux" {
		return usage("use --check", "run: --ready and --watchdog work on Linux only")
	}
	return nil
}
