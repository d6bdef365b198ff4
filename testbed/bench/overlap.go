package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// overlaps does three things to the leader in turn: it kills it; freezes it and
// thaws it once another leads; freezes it and thaws it about when its lease
// ends. It returns how long two led at once in each round, in milliseconds.
func (b *bench) overlaps(ctx context.Context, rounds int) (lasted []float64, err error) {
	const what = "two leaders at once"
	r, err := b.newRig(ctx, b.o.Profile, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	before := time.Duration(0)
	kinds := []func(context.Context, *hosts.Host) error{r.killRound, r.freezeRound, r.edgeRound}
	for round := range rounds {
		leader, err := r.settle(ctx, r.lease/4) // the last round's trouble is not over
		if err == nil {
			r.ask(ctx, leader) // what it told last counts from here on
			err = kinds[round%len(kinds)](ctx, leader)
		}
		if err == nil {
			_, err = r.agree(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", what, round+1, err)
		}
		now := r.together()
		lasted = append(lasted, millis(now-before))
		before = now
		b.progress(what, round+1, rounds)
	}
	return lasted, nil
}

func (r *rig) together() time.Duration { return observe.Together(r.tracker.Overlaps(), boottime.Now()) }

func (r *rig) killRound(ctx context.Context, leader *hosts.Host) error {
	at, err := leader.Kill()
	if err != nil {
		return err
	}
	if _, err := r.successor(ctx, at); err != nil {
		return err
	}
	return r.startAgain(ctx, leader)
}

func (r *rig) freezeRound(ctx context.Context, leader *hosts.Host) error {
	at, err := leader.Freeze()
	if err != nil {
		return err
	}
	r.tracker.Froze(leader.Name())
	if _, err := r.successor(ctx, at); err != nil {
		return err
	}
	return r.thaw(ctx, leader)
}

// edgeRound thaws the leader when it may or may not have been succeeded: the
// two are closest there.
func (r *rig) edgeRound(ctx context.Context, leader *hosts.Host) error {
	if _, err := leader.Freeze(); err != nil {
		return err
	}
	r.tracker.Froze(leader.Name())
	edge := r.lease*3/4 + time.Duration(r.rng.Int64N(int64(r.lease*2/5)))
	if err := r.idle(ctx, edge); err != nil {
		return err
	}
	return r.thaw(ctx, leader)
}

// thaw lets a frozen leader go on, and asks it at once whether it thinks that
// it still leads.
func (r *rig) thaw(ctx context.Context, leader *hosts.Host) error {
	at, err := leader.Thaw()
	if err != nil {
		return err
	}
	r.tracker.Thawed(leader.Name(), at)
	for range 5 {
		r.ask(ctx, leader)
	}
	return r.idle(ctx, r.lease/10)
}
