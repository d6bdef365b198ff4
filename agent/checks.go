package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/health"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// startChecks starts the health checks. Their verdicts reach the loop as calls: no check can delay it.
// The socket answers already, and a reload may have come first.
func (a *agent) startChecks(ctx context.Context) {
	a.reloads.Lock()
	defer a.reloads.Unlock()
	verdicts := map[election.Name]string{}
	a.loop.call(func(election.Instant) { verdicts = a.loop.campaigns.Verdicts() })
	a.checks = health.New(ctx, a.loop.judge, a.logger.With("part", "check"))
	a.checks.Set(a.settings.Load().checks(), func(name election.Name) bool { return verdicts[name] == "" })
}

// setChecks replaces the checks. A host that is a candidate stays one until a new check fails.
func (a *agent) setChecks(c Config) {
	if a.checks == nil {
		return // startChecks takes the newest settings
	}
	verdicts := map[election.Name]string{}
	a.loop.call(func(election.Instant) { verdicts = a.loop.campaigns.Verdicts() })
	for _, name := range a.checks.Set(c.checks(), func(name election.Name) bool { return verdicts[name] == "" }) {
		a.loop.judge(name, func() bool { return true }, "")
	}
}

// judge takes the verdict of a check: why this host may not be a candidate; empty: it may.
func (l *loop) judge(name election.Name, current func() bool, unhealthy string) {
	l.call(func(now election.Instant) {
		if current() {
			l.campaigns.Judge(name, unhealthy)
			l.drainQueue()
			l.publish(now)
		}
	})
}

// given is why a program has given up the lead of the election in which one ended last.
type given struct {
	election election.Name
	why      election.Reason
}

// because is the reason that people see: the check's or the program's, if the candidacy was
// withdrawn for it.
func (l *loop) because(name election.Name, why election.Reason) election.Reason {
	switch unhealthy := l.campaigns.Unhealthy(name); {
	case why != election.ReasonWithdrawn:
	case l.given.election == name && l.given.why != "":
		return l.given.why
	case unhealthy != "":
		return election.Reason(unhealthy)
	}
	return why
}

// unhealthy warns about checks that keep this host from being a candidate.
func (l *loop) unhealthy() (all []api.Warning) {
	verdicts := l.campaigns.Verdicts()
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		where := "in " + string(name)
		if name == health.Host {
			where = "in any election"
		}
		all = append(all, api.Warning{Code: warnUnhealthy, Message: fmt.Sprintf("this host is not a candidate %s: %s", where, verdicts[name])})
	}
	return all
}
