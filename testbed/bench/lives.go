package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// longLife: a keeper starts the next life at once if the last one reached this age.
	longLife = 2100 * time.Millisecond
	// If a lease is valid for more than renewedBy of its length after an instant, it was renewed after that instant.
	renewedBy = 0.975
	// rolling is how many agents are restarted one after another.
	rolling = 5
)

// ending ends processes of agents under keepers. It returns how long it took until the leader's
// next life answered, or 0 if the ending itself adds results about lives to the report.
type ending func(ctx context.Context, b *bench, t *contenders, leader *hosts.Host) (time.Duration, error)

// lives returns the part of the bench that measures an ending: how long until the next process answers and has
// renewed the lease, how long there is no leader, and for how long no program acts. Fields of on
// that are set replace those of the cluster. Each host has a candidate, run by `doyen run`.
func lives(what string, on Point, tenths int, end ending) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		defer func(was Point) { b.on = was }(b.on)
		b.on.Agents, b.on.Profile = cmp.Or(on.Agents, b.on.Agents), cmp.Or(on.Profile, b.on.Profile)
		return b.running(ctx, nil, func(run command) error {
			return b.quiet(ctx, b.keeping(), func(r *rig, _ *hosts.Host) error {
				t, err := r.contend(run)
				if err != nil {
					return err
				}
				return b.repeat(what, b.rounds(tenths), func() error {
					leader, was, err := t.settled(ctx, longLife-t.lease) // cost waited for a lease in the last round
					if err != nil {
						return err
					}
					at := boottime.Now()
					answered, err := end(ctx, b, t, leader)
					if err != nil {
						return err
					}
					values, err := t.cost(ctx, leader, was, at)
					if err != nil {
						return err
					}
					if answered > 0 && values[0].Value == 0 {
						values = append(values, took(answered, perLife))
					}
					b.add(what, values...)
					return nil
				})
			})
		})
	}
}

func (b *bench) keeping() hosts.Config {
	c := b.config()
	c.Adjust = func(_ int, a *settings.Config) { a.Keeper = true }
	return c
}

// keepers measures what keepers cost while nothing happens.
func (b *bench) keepers(ctx context.Context) error {
	return b.quiet(ctx, b.keeping(), func(r *rig, _ *hosts.Host) error {
		each, err := b.costsOf(ctx, r.Cluster.Hosts(), "keepers", idleSettle, 3*b.window())
		for _, c := range each {
			b.add("Keeper", value{Value: c.pssMiB, Unit: pss}, value{Value: c.sleeps, Unit: "checks/min"})
		}
		return err
	})
}

// signalled sends a signal to the agent on the host of the program that leads.
func signalled(by syscall.Signal) ending {
	return func(ctx context.Context, _ *bench, t *contenders, leader *hosts.Host) (time.Duration, error) {
		pid, err := lab.Life(ctx, leader)
		if err != nil {
			return 0, err
		}
		at := boottime.Now()
		if err := syscall.Kill(pid, by); err != nil {
			return 0, err
		}
		return t.nextLife(ctx, leader, pid, at)
	}
}

// restarted restarts the agents one after another with `doyen restart`.
func restarted(ctx context.Context, b *bench, t *contenders, _ *hosts.Host) (time.Duration, error) {
	for _, h := range t.Cluster.Hosts() {
		began := boottime.Now()
		if out, err := exec.CommandContext(ctx, b.binary, "restart", "--socket", h.Config().Socket).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("doyen restart: %w: %s", err, out)
		}
		b.add("Restart", took(boottime.Now().Sub(began), perLife))
	}
	return 0, nil
}

// cost waits for the length of a lease, and then until a program acts, so that all effects of what happened at that instant
// are visible. It returns whether the lead was lost (1 or 0), how long the election had no leader, how
// long no program acted, and how long two programs acted at once.
func (t *contenders) cost(ctx context.Context, leader *hosts.Host, was api.Election, at election.Instant) ([]value, error) {
	if err := observe.Sleep(ctx, t.lease); err != nil {
		return nil, err
	}
	now := boottime.Now()
	if _, err := t.await(ctx, "a program that acts", func(s observe.ProgramSpan) bool { return s.To > now }); err != nil {
		return nil, err
	}
	changes, gap := 0.0, time.Duration(0)
	err := lab.Call(ctx, t.other(leader), func(ctx context.Context, c *client.Client) error {
		e, err := c.Election(ctx, contested, client.ElectionOptions{})
		if err != nil || e.Term == was.Term {
			return err
		}
		all, err := c.History(ctx, contested, 1)
		if err != nil || len(all) == 0 {
			return errors.Join(err, errors.New("there is no history"))
		}
		changes, gap = 1, time.Duration(all[len(all)-1].GapMS)*time.Millisecond
		return nil
	})
	if err != nil {
		return nil, err
	}
	paused, together, err := t.acted(at, now)
	return []value{{Value: changes, Unit: leadsLost}, took(gap, noLeader), took(paused, perPause), took(together, overlapped)}, err
}

// nextLife waits until an agent's next process answers, and either does not lead or has renewed
// its lease. It returns the time from the given instant to that answer.
func (r *rig) nextLife(ctx context.Context, h *hosts.Host, former int, at election.Instant) (after time.Duration, err error) {
	err = until(ctx, "the next life of "+h.Name(), patience, askEvery, func(ctx context.Context) (bool, error) {
		ask, done := context.WithTimeout(ctx, r.lease)
		e, err := asked(ask, h)
		done()
		renewed := e.ValidUntilBoottimeNS > int64(at)+int64(renewedBy*float64(r.lease))
		if err != nil || e.Leader == nil || e.IsLeader && !renewed {
			return false, nil
		}
		after = boottime.Now().Sub(at)
		pid, err := lab.Life(ctx, h)
		return err == nil && pid != former, nil
	})
	return after, err
}
