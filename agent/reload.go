package agent

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/membership"
)

const reasonReloaded = "the configuration was read again"

// Reload reads the configuration again, and applies what can change while the agent runs. If
// any part of the configuration is wrong, nothing changes.
func (c commands) Reload() api.Reload {
	outcome, err := c.agent.reload()
	if err != nil {
		c.agent.logger.Error("the configuration was read again and is wrong: nothing was changed", "err", err)
		outcome.Message = err.Error()
		return outcome
	}
	c.agent.logger.Info(reasonReloaded, "applied", strings.Join(outcome.Applied, " "), "needs_restart", strings.Join(outcome.NeedsRestart, " "))
	outcome.Done = true
	return outcome
}

// obeyHangups reloads at each SIGHUP.
func (a *agent) obeyHangups(ctx context.Context) {
	for {
		select {
		case <-a.around.Hangups:
			commands{a.loop, a}.Reload()
		case <-ctx.Done():
			return
		}
	}
}

func (a *agent) reload() (outcome api.Reload, err error) {
	outcome = api.Reload{Applied: []string{}, NeedsRestart: []string{}}
	if a.around.Reread == nil {
		return outcome, errors.New("this agent is part of another program")
	}
	a.reloads.Lock()
	defer a.reloads.Unlock()
	next, err := a.around.Reread()
	if err != nil {
		return outcome, err
	}
	now := a.settings.Load()
	live, rest := differences(*now, next)
	if (now.KeyFile == "") != (next.KeyFile == "") { // a running agent can't start or stop encrypting gossip
		live, rest = without(live, "key-file"), append(rest, "key-file")
		next.KeyFile = now.KeyFile
	}
	applied := *now // settings that need a restart keep their present values
	for _, s := range settings.All() {
		if s.Live {
			reflect.ValueOf(s.Field(&applied)).Elem().Set(reflect.ValueOf(s.Field(&next)).Elem())
		}
	}
	applied.Elections, applied.HostCheck = next.Elections, next.HostCheck
	if r := a.roster.Load(); r.Follows() { // the roster's algorithm and lease are in force, even after a restart
		applied.Algorithm, applied.Lease, applied.ProfileLease = next.Algorithm, next.Lease, next.ProfileLease
		rest, outcome.Message = without(without(rest, "algorithm"), "lease"), words.Differing(next.Shared(), r)
	} else if slices.Contains(rest, "algorithm") || slices.Contains(rest, "lease") {
		outcome.Message = "algorithm and lease are the same on all agents, and `doyen settings set` changes them while all run"
	}
	rekeyed, err := a.apply(*now, applied)
	if err != nil {
		return outcome, err
	}
	if rekeyed && !slices.Contains(live, "key-file") {
		live = append(live, "key-file")
	}
	a.settings.Store(&applied)
	a.around.Life.Tells(a.known())
	outcome.Applied, outcome.NeedsRestart = append(outcome.Applied, live...), append(outcome.NeedsRestart, rest...)
	return outcome, nil
}

// differences returns the settings in which two configurations differ: those that a reload can
// apply, and those that need a restart.
func differences(now, next settings.Config) (live, rest []string) {
	for _, s := range settings.All() {
		was, is := reflect.ValueOf(s.Field(&now)).Elem(), reflect.ValueOf(s.Field(&next)).Elem()
		switch list := was.Kind() == reflect.Slice && was.Len() == 0 && is.Len() == 0; {
		case list, reflect.DeepEqual(was.Interface(), is.Interface()):
		case s.Live:
			live = append(live, s.Name)
		default:
			rest = append(rest, s.Name)
		}
	}
	if !reflect.DeepEqual(now.Elections, next.Elections) && len(now.Elections)+len(next.Elections) > 0 {
		live = append(live, "elections")
	}
	if now.HostCheck != next.HostCheck && !slices.Contains(live, "check") {
		live = append(live, "check")
	}
	if !reflect.DeepEqual(now.Access, next.Access) {
		rest = append(rest, "access")
	}
	return live, rest
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// apply applies the new settings to the running parts. The changes that can fail come first. If one of these
// fails, apply undoes the earlier ones. rekeyed reports whether the cluster keys have changed.
func (a *agent) apply(now, next settings.Config) (rekeyed bool, err error) {
	var keys [][]byte
	if next.KeyFile != "" {
		var bad *settings.Error
		if keys, bad = settings.ReadKeys(next.KeyFile); bad != nil {
			return false, bad
		}
	}
	if err := a.membership.SetSeeds(a.seeds(next.Join)); err != nil {
		return false, err
	}
	restore := func(err error) error { return errors.Join(err, a.membership.SetSeeds(a.seeds(now.Join))) }
	if now.HTTP != next.HTTP {
		if err := a.relisten(now.HTTP, next.HTTP); err != nil {
			return false, restore(err)
		}
	}
	if next.KeyFile != "" {
		if rekeyed, err = a.keys.Reload(next.KeyFile, keys); err != nil {
			if now.HTTP != next.HTTP {
				err = errors.Join(err, a.relisten(next.HTTP, now.HTTP))
			}
			return false, restore(err)
		}
	}
	if now.HTTP != next.HTTP {
		if err := a.membership.Update(func(m *membership.Member) { m.PageAddr = pageAddr(next.HTTP, m.PeerAddr.Addr()) }); err != nil {
			a.logger.Error("can't tell the others where the status page is now", "err", err)
		}
	}
	a.level.configure(next.LogLevel)
	return rekeyed, a.loop.Reconfigure(acting(next), next.Expected(), next.Shared())
}

// preemption returns the settings preempt and preempt-delay.
func (a *agent) preemption() (bool, time.Duration) {
	c := a.settings.Load()
	return c.Preempt, c.PreemptDelay
}

// listenTCP starts the optional read-only listener.
func (a *agent) listenTCP(addr string) error {
	return listen("http", addr, func(l net.Listener) { a.stopTCP = a.server.TCP(l) })
}

// listen serves an optional listener. flag names the setting that has its address; no address: no listener.
func listen(flag, addr string, serve func(net.Listener)) error {
	if addr == "" {
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return settings.ListenError(flag, addr, err)
	}
	serve(l)
	return nil
}

// relisten moves the read-only listener to another address; empty: to none. The old listener closes first, since
// one address may include the other. If the agent can't listen at the new address, it returns to the old one.
func (a *agent) relisten(from, to string) error {
	if a.stopTCP != nil {
		a.stopTCP()
		a.stopTCP = nil
	}
	if err := a.listenTCP(to); err != nil {
		return errors.Join(err, a.listenTCP(from))
	}
	return nil
}

func acting(c settings.Config) actors.Settings {
	return actors.Settings{Priority: c.Priority, Host: c.Candidate, Preempt: c.Preempt, PreemptDelay: c.PreemptDelay, Needs: needs(c)}
}

// needs returns what this host needs a companion for: its hooks and its checks.
func needs(c settings.Config) actors.Needs {
	hooks := c.Hooks()
	n := actors.Needs{Hooked: func(name election.Name) bool { return hooks.For(name) != "" }, Named: hooks.Elections()}
	for name, k := range c.Checks() {
		if name == health.Host {
			name = api.EveryElection
		}
		if n.Checked = append(n.Checked, name); k.KeepLast {
			n.KeepLast = append(n.KeepLast, name)
		}
	}
	slices.Sort(n.Checked)
	n.Named = append(n.Named, n.Checked...)
	return n
}
