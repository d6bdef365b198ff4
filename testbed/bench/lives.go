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
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// longLife: a keeper starts the next life at once if the last one reached this age.
	longLife = 2100 * time.Millisecond
	askEvery = time.Millisecond
	// renewedBy is the part of a lease for which a renewal is valid, from its send on.
	renewedBy = 0.975
	// rolling is how many agents are restarted one after another.
	rolling = 5
)

// ending ends processes of agents under keepers. It returns how long it took until the next life
// of the leader answered; 0: it has reported the lives itself.
type ending func(ctx context.Context, b *bench, t *contenders, leader *hosts.Host) (time.Duration, error)

// lives turns an ending into a part of the bench, on a cluster that differs in what on has: how
// long until the next process answers and has renewed the lease, how long there is no leader, and
// for how long no program acts. On each host is a candidate by `doyen run`; nothing watches.
func lives(what string, on Point, tenths int, end ending) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		defer func(was Point) { b.on = was }(b.on)
		b.on.Agents, b.on.Profile = cmp.Or(on.Agents, b.on.Agents), cmp.Or(on.Profile, b.on.Profile)
		return b.running(ctx, nil, func(run command) error {
			return b.rivals(ctx, b.keeping(), run, func(t *contenders) error {
				return b.repeat(what, b.rounds(tenths), func() error {
					leader, was, err := t.settled(ctx, contested, longLife-t.lease) // cost has waited for a lease
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

// signalled sends a signal to the agent on whose host a program leads.
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

// settled waits for that time, and then until there is a leader. It returns the host that leads,
// and what is known there.
func (r *rig) settled(ctx context.Context, name string, d time.Duration) (*hosts.Host, api.Election, error) {
	if err := observe.Sleep(ctx, d+time.Duration(r.rng.Int64N(int64(r.lease/4)))); err != nil {
		return nil, api.Election{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		for _, h := range r.Cluster.Hosts() {
			if e, err := asked(ctx, h, name); err == nil && e.IsLeader {
				return h, e, nil
			}
		}
		if err := observe.Sleep(ctx, askEvery); err != nil {
			return nil, api.Election{}, fmt.Errorf("wait for a leader: %w", err)
		}
	}
}

// cost waits until the programs know all that follows from what happened at that instant. It
// returns how many leads were lost, for how long there was no leader, for how long no program
// acted, and for how long two did.
func (t *contenders) cost(ctx context.Context, leader *hosts.Host, was api.Election, at election.Instant) ([]value, error) {
	if err := observe.Sleep(ctx, t.lease); err != nil {
		return nil, err
	}
	now := boottime.Now()
	if _, _, err := t.await(ctx, "a program that acts", func(s stamp.Stamp) bool { return s.Last > int64(now) }); err != nil {
		return nil, err
	}
	other := t.other(leader)
	e, err := asked(ctx, other, contested)
	if err != nil {
		return nil, err
	}
	changes, gap := 0.0, time.Duration(0)
	if e.Term != was.Term {
		entry, err := lastChange(ctx, other, contested)
		if err != nil {
			return nil, err
		}
		changes, gap = 1, time.Duration(entry.GapMS)*time.Millisecond
	}
	paused, together, err := t.acted(at, now)
	return []value{{Value: changes, Unit: leadsLost}, took(gap, noLeader), took(paused, perPause), took(together, overlapped)}, err
}

// acted returns, for the time between two instants and by the programs' own stamps, how long no
// program acted, and how long two did.
func (t *contenders) acted(from, until election.Instant) (paused, together time.Duration, err error) {
	spans, err := t.Spans()
	if err != nil {
		return 0, 0, err
	}
	paused, _ = observe.Pause(spans, from, until)
	for _, o := range observe.ProgramOverlaps(spans) {
		together = max(together, o.To.Sub(max(o.From, from)))
	}
	return paused, together, nil
}

// nextLife waits until an agent's next process answers, and leads with a lease that it has
// renewed, or does not lead. It returns how long after the instant that was.
func (r *rig) nextLife(ctx context.Context, h *hosts.Host, former int, at election.Instant) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ask, done := context.WithTimeout(ctx, r.lease)
		e, err := asked(ask, h, contested)
		done()
		renewed := e.ValidUntilBoottimeNS > int64(at)+int64(renewedBy*float64(r.lease))
		if err == nil && e.Leader != nil && (!e.IsLeader || renewed) {
			after := boottime.Now().Sub(at)
			if pid, err := lab.Life(ctx, h); err == nil && pid != former {
				return after, nil
			}
		}
		if err := observe.Sleep(ctx, askEvery); err != nil {
			return 0, fmt.Errorf("wait for the next life of %s: %w", h.Name(), err)
		}
	}
}

func asked(ctx context.Context, h *hosts.Host, name string) (api.Election, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	return c.Election(ctx, name, client.ElectionOptions{})
}

// lastChange returns the newest entry of an agent's history.
func lastChange(ctx context.Context, h *hosts.Host, name string) (api.Transition, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	all, err := c.History(ctx, name, 1)
	if err != nil || len(all) == 0 {
		return api.Transition{}, errors.Join(err, errors.New("there is no history"))
	}
	return all[len(all)-1], nil
}
