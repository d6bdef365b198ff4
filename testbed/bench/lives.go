package bench

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// longLife: a keeper starts the next life at once if the last one reached this age.
	longLife = 2100 * time.Millisecond
	askEvery = time.Millisecond
	// renewedBy is the part of a lease for which a renewal is valid, from its send on.
	renewedBy = 0.975
)

// lives measures what the end of a leading agent's process costs under a keeper: how long until
// the next process answers and has renewed the lease, and how long there is no leader.
func (b *bench) lives(ctx context.Context) error {
	for _, end := range []struct {
		name   string
		signal syscall.Signal
		tenths int
	}{{"kill", syscall.SIGKILL, 10}, {"hang", syscall.SIGSTOP, 5}, {"restart", 0, 5}} {
		what := "Life/end=" + end.name
		if err := b.kept(ctx, func(r *rig) error {
			return b.repeat(what, b.rounds(end.tenths), func() error { return b.life(ctx, r, what, end.signal) })
		}); err != nil {
			return err
		}
	}
	return nil
}

// kept runs agents with keepers, which nothing watches during the measurement.
func (b *bench) kept(ctx context.Context, measure func(*rig) error) (err error) {
	config := b.config()
	config.Adjust = func(_ int, c *agent.Config) { c.Keeper = true }
	r, err := newRig(ctx, config, 0, b.rng)
	if err != nil {
		return err
	}
	defer b.finish(r, &err)
	if _, err := r.agree(ctx); err != nil {
		return err
	}
	r.Unwatch()
	for _, h := range r.Cluster.Hosts() {
		_, shared, err := readMemory(h.PID())
		if err != nil {
			return err
		}
		b.add("Keeper", value{Value: shared, Unit: pss})
	}
	return measure(r)
}

// life ends the leader's process once, and measures the consequences.
func (b *bench) life(ctx context.Context, r *rig, what string, end syscall.Signal) error {
	if err := observe.Sleep(ctx, longLife+time.Duration(r.rng.Int64N(int64(r.lease/4)))); err != nil {
		return err
	}
	leader, was, err := r.asked(ctx)
	if err != nil {
		return err
	}
	c := client.New(leader.Config().Socket)
	defer c.Close()
	before, err := c.Agent(ctx)
	if err != nil {
		return err
	}
	at := boottime.Now()
	if end != 0 {
		err = syscall.Kill(before.PID, end)
	} else {
		var outcome api.Outcome
		if outcome, err = c.Restart(ctx); err == nil && !outcome.Done {
			err = errors.New(outcome.Message)
		}
	}
	if err != nil {
		return err
	}
	answered, err := nextLife(ctx, leader, before.BootID, at, r.lease)
	if err != nil {
		return err
	}
	now, err := r.follow(ctx, r.other(leader))
	if err != nil {
		return err
	}
	changes, gap := 0.0, time.Duration(0)
	if now.Term != was.Term {
		changes, gap = 1, answered
		if h, err := lastGap(ctx, r.other(leader)); err == nil {
			gap = h
		}
	}
	values := []value{took(gap, noLeader), {Value: changes, Unit: leadsLost}}
	if changes == 0 {
		values = append(values, took(answered, perLife))
	}
	b.add(what, values...)
	return nil
}

// nextLife waits until an agent's next process answers, and either follows or leads with a
// lease that it has renewed. It returns how long after the instant that was.
func nextLife(ctx context.Context, h *hosts.Host, former string, at election.Instant, lease time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ask, done := context.WithTimeout(ctx, lease)
		c := client.New(h.Config().Socket)
		e, err := c.Election(ask, string(election.Default), client.ElectionOptions{})
		a, agentErr := c.Agent(ask)
		c.Close()
		done()
		renewed := e.ValidUntilBoottimeNS > int64(at)+int64(renewedBy*float64(lease))
		if err == nil && agentErr == nil && a.BootID != former && e.Leader != nil && (!e.IsLeader || renewed) {
			return boottime.Now().Sub(at), nil
		}
		if err := observe.Sleep(ctx, askEvery); err != nil {
			return 0, err
		}
	}
}

// asked returns the agent that answers that it leads.
func (r *rig) asked(ctx context.Context) (*hosts.Host, api.Election, error) {
	for {
		for _, h := range r.Cluster.Hosts() {
			if e, err := r.follow(ctx, h); err == nil && e.IsLeader {
				return h, e, nil
			}
		}
		if err := observe.Sleep(ctx, askEvery); err != nil {
			return nil, api.Election{}, err
		}
	}
}

func (r *rig) follow(ctx context.Context, h *hosts.Host) (api.Election, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	return c.Election(ctx, string(election.Default), client.ElectionOptions{})
}

// lastGap returns how long the agent knew no leader before the present one.
func lastGap(ctx context.Context, h *hosts.Host) (time.Duration, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	all, err := c.History(ctx, string(election.Default), 1)
	if err != nil || len(all) == 0 {
		return 0, errors.Join(err, errors.New("there is no history"))
	}
	return time.Duration(all[len(all)-1].GapMS) * time.Millisecond, nil
}
