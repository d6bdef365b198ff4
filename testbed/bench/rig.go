package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type rig struct {
	*lab.Lab
	lease   time.Duration
	rng     *rand.Rand
	first   election.Instant // just before the first agent's process started
	started election.Instant // just before the last agent's process started
}

const (
	// patience is the limit for everything that should take only a few leases.
	patience = 20 * time.Second
	// pollEvery is how often agents are asked for their deadlines, if there are fewer
	// than twice pollFew. If there are more, they are asked less often, so that asking stays cheap.
	pollEvery = 50 * time.Millisecond
	pollFew   = 8
)

func (b *bench) pollEvery() time.Duration {
	return pollEvery * time.Duration(max(1, b.on.Agents/pollFew))
}

// quiet starts agents, and measures while nothing watches them.
func (b *bench) quiet(ctx context.Context, c hosts.Config, measure func(r *rig, leader *hosts.Host) error) (err error) {
	r, err := b.newRig(ctx, c, 0)
	if err != nil {
		return err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	if err != nil {
		return err
	}
	r.Unwatch()
	leader, _ := r.Cluster.Host(a.Leader)
	return measure(r, leader)
}

// newRig starts agents, and watches them. With a poll of 0 they are not polled.
func (b *bench) newRig(ctx context.Context, c hosts.Config, poll time.Duration) (*rig, error) {
	l, err := lab.New(ctx, c, lab.Options{Poll: poll})
	if err != nil {
		return nil, err
	}
	r := &rig{Lab: l, rng: b.rng, lease: c.Lease()}
	if r.first, r.started, err = l.StartAll(); err != nil {
		return nil, errors.Join(err, l.Kill())
	}
	return r, nil
}

func (r *rig) agree(ctx context.Context) (observe.Agreement, error) {
	return r.Agree(ctx, patience)
}

// settle waits for an agreement, for the given time, and for a random part of a quarter of a
// lease, so that a fault can come at any moment between heartbeats. It returns the leader.
func (r *rig) settle(ctx context.Context, d time.Duration) (*hosts.Host, error) {
	if _, err := r.agree(ctx); err != nil {
		return nil, err
	}
	if err := observe.Sleep(ctx, d+time.Duration(r.rng.Int64N(int64(r.lease/4)))); err != nil {
		return nil, err
	}
	a, err := r.agree(ctx)
	if err != nil {
		return nil, err
	}
	h, ok := r.Cluster.Host(a.Leader)
	if !ok {
		return nil, fmt.Errorf("find the leader: there is no agent %q", a.Leader)
	}
	return h, nil
}

// successor waits for the first leadership that begins after the instant.
func (r *rig) successor(ctx context.Context, after election.Instant) (observe.Claim, error) {
	var c observe.Claim
	err := r.Until(ctx, patience, "a new leader", func() (ok bool) {
		r.Look(func(e *observe.Elections) { c, ok = e.Of(string(election.Default)).LedAfter(after) })
		return ok
	})
	return c, err
}

// until repeats the call of done until that reports true, it fails, or the limit has passed.
func until(ctx context.Context, what string, limit, every time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		if err := observe.Sleep(ctx, every); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}
