package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/agent/boottime"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// fault makes the leader stop leading, and returns the instant before.
type fault func(ctx context.Context, r *rig, leader *hosts.Host) (election.Instant, error)

func kill(_ context.Context, _ *rig, leader *hosts.Host) (election.Instant, error) {
	return leader.Kill()
}

func terminate(_ context.Context, _ *rig, leader *hosts.Host) (election.Instant, error) {
	return leader.Terminate()
}

func resign(ctx context.Context, _ *rig, leader *hosts.Host) (election.Instant, error) {
	c := client.New(leader.Config().Socket)
	defer c.Close()
	at := boottime.Now()
	outcome, err := c.Resign(ctx, string(election.Default))
	if err == nil && !outcome.Done {
		err = fmt.Errorf("refused: %s", outcome.Message)
	}
	return at, err
}

func transfer(ctx context.Context, r *rig, leader *hosts.Host) (election.Instant, error) {
	all := r.cluster.Hosts()
	to := all[r.rng.IntN(len(all))]
	for to == leader {
		to = all[r.rng.IntN(len(all))]
	}
	c := client.New(leader.Config().Socket)
	defer c.Close()
	at := boottime.Now()
	outcome, err := c.Transfer(ctx, string(election.Default), to.Name())
	if err == nil && !outcome.Done {
		err = fmt.Errorf("refused: %s", outcome.Message)
	}
	return at, err
}

// takeovers deals the fault to the leader, round after round, and returns how
// long it took each time until another led, in milliseconds.
func (b *bench) takeovers(ctx context.Context, profile, what string, rounds int, f fault) ([]float64, error) {
	r, err := newRig(ctx, b.config(profile), pollEvery, b.rng)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var took []float64
	for round := range rounds {
		d, err := r.takeover(ctx, f)
		if err != nil {
			return took, fmt.Errorf("%s, round %d: %w", what, round+1, err)
		}
		took = append(took, millis(d))
		b.progress(what, round+1, rounds)
	}
	return took, b.together(r)
}

// takeover makes one round, after which all agents run again.
func (r *rig) takeover(ctx context.Context, f fault) (time.Duration, error) {
	leader, err := r.settle(ctx)
	if err != nil {
		return 0, err
	}
	r.ask(ctx, leader)
	at, err := f(ctx, r, leader)
	if err != nil {
		return 0, err
	}
	next, err := r.successor(ctx, at)
	if err != nil {
		return 0, err
	}
	if next.Agent == leader.Name() {
		return 0, fmt.Errorf("%s led again, nobody took over", next.Agent)
	}
	return next.Start.Sub(at), r.revive(ctx, leader)
}

// revive makes sure that the agent runs.
func (r *rig) revive(ctx context.Context, h *hosts.Host) error {
	if _, err := h.Thaw(); err == nil && h.PID() != 0 {
		return r.reviveDying(ctx, h)
	}
	_, err := h.Start()
	return err
}
