package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/quorum"
)

// drift is the agents' bound on how far a clock strays.
const drift = 0.01

// A second fault: the leader is killed, another agent takes over, and the killed one
// is started again; for a lease its voter grants nobody else what it may have
// promised before (V5). The new leader is hit at any moment of that. Other parts
// wait until it is over.

// againKill measures a second kill: the hold has to be waited for, and no longer.
func (b *bench) againKill(ctx context.Context) error {
	held := quorum.Outlast(b.config(b.o.Profile).Lease(), drift)
	return b.secondFault(ctx, "again_kill", "kill -9", killed(), Target{ofP99, millis(held) + slack})
}

// againHandover measures hand-overs, which wait for no hold.
func (b *bench) againHandover(ctx context.Context) error {
	for _, h := range []struct {
		key, what string
		fault     fault
	}{
		{"again_sigterm", "SIGTERM", terminated()}, {"again_resign", "resign", resigned()}, {"again_transfer", "transfer", transferred()},
	} {
		if err := b.secondFault(ctx, h.key, h.what, h.fault, Target{ofMedian, 15}, Target{ofP99, 70}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) secondFault(ctx context.Context, key, what string, f fault, targets ...Target) error {
	took, err := b.secondFaults(ctx, what, f)
	b.add(key, what+" within a lease of another's kill -9 and restart → new leader", "ms", b.small(&targets[0]), took)
	if b.small(&targets[0]) != nil {
		b.report.Results[len(b.report.Results)-1].Also = targets[1:]
	}
	return err
}

func (b *bench) secondFaults(ctx context.Context, what string, f fault) (took []float64, err error) {
	r, err := b.newRig(ctx, b.o.Profile, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	for again := 0; len(took) < b.o.Rounds; {
		d, err := r.secondFault(ctx, f)
		if errors.Is(err, errAgain) && again < 2+b.o.Rounds/10 {
			again++
			b.note(fmt.Sprintf("%s, %d rounds: %v", what, again, err))
			continue
		}
		if err != nil {
			return took, fmt.Errorf("%s, round %d: %w", what, len(took)+1, err)
		}
		took = append(took, millis(d))
		b.progress(what, len(took), b.o.Rounds)
	}
	return took, nil
}

// secondFault makes one round: a kill, and the fault at a moment while the killed
// agent, started again, may still hold.
func (r *rig) secondFault(ctx context.Context, f fault) (time.Duration, error) {
	if _, err := r.takeover(ctx, killed()); err != nil {
		return 0, err
	}
	leader, at, err := r.deal(ctx, time.Duration(r.rng.Int64N(int64(r.lease))), f)
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
	return next.Start.Sub(at), err
}
