package main

import (
	"runtime"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
)

// runHealthFlags are the flags by which `doyen run` learns whether CMD should lead here.
func runHealthFlags() []flag {
	return []flag{
		{name: "check", usage: "`CMD` of the shell that shows this host's health: while it fails, this is not a candidate, and what leads is stopped and handed over (default: none)"},
		{name: "check-every", usage: "`TIME` from one check to the next", standard: health.DefaultEvery.String()},
		{name: "check-timeout", usage: "`TIME` after which a check is killed and has failed", standard: health.DefaultEvery.String()},
		{name: "check-fall", usage: "`NUMBER` of checks that fail in a row until the host is unhealthy", standard: strconv.Itoa(health.DefaultFall)},
		{name: "check-rise", usage: "`NUMBER` of checks that succeed in a row until it is healthy again", standard: strconv.Itoa(health.DefaultRise)},
		truth("ready", "CMD leads only once it has sent READY=1 to its NOTIFY_SOCKET"),
		{name: "ready-timeout", usage: "`TIME` that CMD may take for READY=1, before another host may lead", standard: defaultReady.String()},
		{name: "watchdog", usage: "`TIME` within which CMD must send WATCHDOG=1 to its NOTIFY_SOCKET, again and again, or another host may lead (default: none)"},
	}
}

func runHealth(i *invocation, c *runner.Config) (err error) {
	for _, flag := range []string{"check-every", "check-timeout", "check-fall", "check-rise"} {
		if i.value(flag) != "" && i.value("check") == "" {
			return usage("add --check CMD", "run: --%s without --check", flag)
		}
	}
	c.Check = health.Check{Command: i.value("check")}
	c.Ready, c.ReadyIn = i.isTrue("ready"), defaultReady
	if !c.Ready && i.value("ready-timeout") != "" {
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
