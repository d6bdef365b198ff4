package act

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/each"
)

// reload reads the work again. If it removes the hook of an election that this host leads, the removed hook
// still runs once at the end of the leadership. It then undoes what it has set up.
func (a *actor) reload() {
	next, err := a.Reread()
	if err != nil {
		a.Logger.Error("the configuration was read again and is wrong: nothing was changed", "err", err)
		return
	}
	former := a.hooks.Commands()
	a.Work = next
	a.hooks.Configure(a.kept(next.Hooks))
	a.setChecks()
	for name, last := range a.announced {
		if command := a.hooks.Command(name); command == "" || command == former.For(name) || last.change.Type == "" {
			continue
		}
		last.change.Reason = "the configuration was read again"
		if last.event == election.Leading {
			if _, led := a.led[name]; led {
				a.run(name, last.change)
			}
			continue
		}
		delete(a.announced, name)
		a.announce(name, last.change)
	}
	a.dirty = true
}

// kept returns the commands, and the former commands that still have to run once.
func (a *actor) kept(c hook.Commands) hook.Commands {
	former := a.hooks.Commands()
	c.Of = maps.Clone(c.Of)
	if c.Of == nil {
		c.Of = map[election.Name]string{}
	}
	for name := range a.led {
		if command := former.For(name); c.For(name) == "" && command != "" {
			c.Of[name] = command
		}
	}
	return c
}

// setChecks runs the configured checks.
func (a *actor) setChecks() {
	healthy := func(name election.Name) bool { return a.verdicts[nameOf(name)].Able }
	for _, name := range a.checks.Set(a.Work.Checks, healthy) {
		delete(a.verdicts, nameOf(name))
	}
	for name := range a.Work.Checks {
		if _, known := a.verdicts[nameOf(name)]; !known {
			a.verdicts[nameOf(name)] = api.Check{}
		}
	}
	a.dirty = true
}

// mayLead reports whether this host leads an election for which the check counts. Before the agent has had
// firstLines to report what this host leads, it returns true.
func (a *actor) mayLead(name election.Name) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, led := a.led[name]
	return led || name == health.Host && len(a.led) > 0 || a.since.IsZero() || time.Since(a.since) < firstLines
}

// nameOf returns the name that the agent uses for a check.
func nameOf(name election.Name) string { return cmp.Or(string(name), api.EveryElection) }

// judged handles the verdict of a check. unhealthy is why this host may not lead; empty: it may.
func (a *actor) judged(name election.Name, current func() bool, unhealthy string) {
	a.call(func() {
		if current() {
			a.verdicts[nameOf(name)] = api.Check{Able: unhealthy == "", Reason: unhealthy}
			a.dirty = true
		}
	})
}

// reports returns what the agent has to know of this process.
func (a *actor) reports() api.Companion {
	c := api.Companion{Checks: maps.Clone(a.verdicts), Failed: maps.Clone(a.failed)}
	c.Elections = each.Of(a.Work.Hooks.Elections(), func(name election.Name) string { return string(name) })
	return c
}

// report sends the agent what has changed. Only one report is sent at a time.
func (a *actor) report() {
	if !a.dirty || a.candidacy == nil || a.reporting {
		return
	}
	k, reports := a.candidacy, a.reports()
	if a.dirty = false; reflect.DeepEqual(reports, a.reported) {
		return
	}
	a.reporting, a.reported = true, reports
	go func() {
		ctx, cancel := context.WithTimeout(a.ctx, callTimeout)
		err := k.Report(ctx, reports)
		if cancel(); err != nil {
			select { // between two tries
			case <-time.After(lastRetry):
			case <-a.ctx.Done():
			}
		}
		a.call(func() {
			if a.reporting = false; err == nil {
				a.complaint = ""
			}
			if err == nil || k != a.candidacy {
				return
			}
			a.reported, a.dirty = api.Companion{}, true
			if text := err.Error(); text != a.complaint {
				a.complaint = text
				a.Logger.Warn("the agent did not take a report; trying again", "err", text)
			}
		})
	}()
}
