package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/doyen-election/doyen/election"
)

// notify reports a state to the service manager, if there is one.
func (a *agent) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.logger.Debug("the service manager can't be notified", "err", err)
	}
}

// tellStatus shows in the service manager which agent leads the default election.
func (a *agent) tellStatus(ctx context.Context) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	follower, err := a.loop.Hub.Follow(string(election.Default), 0)
	if err != nil {
		return
	}
	defer follower.Close()
	for follower.Wait(ctx) {
		changes, _, _ := follower.Take()
		if len(changes) == 0 {
			continue
		}
		text := "nobody leads"
		if c := changes[len(changes)-1]; c.Leader != nil {
			text = fmt.Sprintf("%s leads, term %d", c.Leader.Name, c.Term)
		}
		a.notify("STATUS=" + text)
	}
}

// watchdog reports to the service manager that the loop still answers, if the unit has a watchdog.
// The service manager restarts an agent whose loop hangs.
func (a *agent) watchdog(ctx context.Context) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	tick := time.NewTicker(interval / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ping, cancel := context.WithTimeout(ctx, interval/3)
			if a.loop.Ping(ping) == nil {
				a.notify(daemon.SdNotifyWatchdog)
			}
			cancel()
		}
	}
}
