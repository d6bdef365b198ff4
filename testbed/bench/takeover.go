package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// fault makes the leader stop leading.
type fault struct {
	// deal returns the instant just before.
	deal func(ctx context.Context, r *rig, leader *hosts.Host) (election.Instant, error)
	ends bool // the leader's process
	// mend, if not nil, undoes it.
	mend func(*rig) error
}

func killed() fault {
	return fault{ends: true, deal: func(_ context.Context, _ *rig, leader *hosts.Host) (election.Instant, error) { return leader.Kill() }}
}

func terminated() fault {
	return fault{ends: true, deal: func(_ context.Context, _ *rig, leader *hosts.Host) (election.Instant, error) {
		return leader.Terminate()
	}}
}

func resigned() fault {
	return asked(func(ctx context.Context, c *client.Client, _ *rig, _ *hosts.Host) (api.Outcome, error) {
		return c.Resign(ctx, string(election.Default))
	})
}

func transferred() fault {
	return asked(func(ctx context.Context, c *client.Client, r *rig, leader *hosts.Host) (api.Outcome, error) {
		all := r.cluster.Hosts()
		to := leader
		for to == leader {
			to = all[r.rng.IntN(len(all))]
		}
		return c.Transfer(ctx, string(election.Default), to.Name())
	})
}

// asked is a fault that the leader's agent is asked for.
func asked(request func(context.Context, *client.Client, *rig, *hosts.Host) (api.Outcome, error)) fault {
	return fault{deal: func(ctx context.Context, r *rig, leader *hosts.Host) (election.Instant, error) {
		c := client.New(leader.Config().Socket)
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		at := boottime.Now()
		outcome, err := request(ctx, c, r, leader)
		if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Code == api.CodeNotLeader {
			err = errMoved
		}
		if err == nil && !outcome.Done {
			err = fmt.Errorf("%s would not hand over: %s", leader.Name(), outcome.Message)
		}
		return at, err
	}}
}

// takeovers deals the fault to the leader, round after round, and returns how
// long it took each time until another led, in milliseconds.
func (b *bench) takeovers(ctx context.Context, profile, what string, rounds int, f fault) (took []float64, err error) {
	r, err := b.newRig(ctx, profile, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	took, err = b.repeat(what, rounds, func() (time.Duration, error) { return r.takeover(ctx, f) })
	if err != nil {
		return nil, err
	}
	if _, err := r.agree(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b.elsewhere = append(b.elsewhere, millis(r.together()))
	return took, nil
}

// repeat makes rounds until that many were measured, and returns how long each took,
// in milliseconds. A few of those in which nobody took over are made once more.
func (b *bench) repeat(what string, rounds int, round func() (time.Duration, error)) (took []float64, err error) {
	for again := 0; len(took) < rounds; {
		d, err := round()
		if errors.Is(err, errAgain) && again < 2+rounds/10 {
			again++
			b.note(fmt.Sprintf("%s, %d rounds: %v", what, again, err))
			continue
		}
		if err != nil {
			return took, fmt.Errorf("%s, round %d: %w", what, len(took)+1, err)
		}
		took = append(took, millis(d))
		b.progress(what, len(took), rounds)
	}
	return took, nil
}

// errMoved says that the leader was another one by the time the fault came: on a
// busy machine leaders are lost by themselves.
var errMoved = errors.New("it leads no more")

// errAgain says that the leader won again: nobody else had the time, on a busy
// machine, before it might stand again.
var errAgain = errors.New("the same agent led again, nobody took over")

// deal lets the cluster settle for that time and deals the fault to the leader.
func (r *rig) deal(ctx context.Context, settle time.Duration, f fault) (leader *hosts.Host, at election.Instant, err error) {
	const tries = 5
	for range tries {
		if leader, err = r.settle(ctx, settle); err != nil {
			return nil, 0, err
		}
		r.ask(ctx, leader)
		if at, err = f.deal(ctx, r, leader); !errors.Is(err, errMoved) {
			return leader, at, err
		}
	}
	return nil, 0, fmt.Errorf("%s: %w, %d times; is the machine too busy?", leader.Name(), err, tries)
}

// takeover makes one round, after which all agents run again. It begins a lease
// after the last one: a voter that was started again is free to vote by then,
// and who gave leadership up free to lead. What is measured is one fault that
// hits agents in good health.
func (r *rig) takeover(ctx context.Context, f fault) (time.Duration, error) {
	return r.succession(ctx, r.lease*21/20, f)
}

// succession lets the cluster settle for that time, deals the fault to the leader,
// and returns how long it took until another one led.
func (r *rig) succession(ctx context.Context, settle time.Duration, f fault) (time.Duration, error) {
	leader, at, err := r.deal(ctx, settle, f)
	if err != nil {
		return 0, err
	}
	next, err := r.successor(ctx, at)
	if err != nil {
		return 0, err
	}
	if next.Agent == leader.Name() {
		return 0, errAgain
	}
	if f.ends {
		err = r.startAgain(ctx, leader)
	}
	if f.mend != nil {
		err = f.mend(r)
	}
	return next.Start.Sub(at), err
}

// startAgain starts an agent whose process ends or has ended.
func (r *rig) startAgain(ctx context.Context, h *hosts.Host) error {
	err := r.until(ctx, "the end of "+h.Name(), func() bool { return h.Status() == hosts.Down })
	if err != nil {
		return err
	}
	_, err = h.Start()
	return err
}

// coldStarts starts all agents anew, round after round, and returns how long
// after the last one's start the last one knew the leader, and how long after the
// first one's, in milliseconds.
func (b *bench) coldStarts(ctx context.Context, rounds int) (took, whole []float64, err error) {
	const what = "cold start"
	for round := range rounds {
		d, all, err := b.coldStart(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%s, round %d: %w", what, round+1, err)
		}
		took, whole = append(took, millis(d)), append(whole, millis(all))
		b.progress(what, round+1, rounds)
	}
	return took, whole, nil
}

func (b *bench) coldStart(ctx context.Context) (took, whole time.Duration, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return 0, 0, err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	return a.At.Sub(r.started), a.At.Sub(r.first), err
}
