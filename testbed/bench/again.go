package bench

import (
	"context"
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
	return b.repeat(what, b.o.Rounds, func() (time.Duration, error) { return r.secondFault(ctx, f) })
}

// secondFault makes one round: a kill, and the fault at a moment while the killed
// agent, started again, may still hold.
func (r *rig) secondFault(ctx context.Context, f fault) (time.Duration, error) {
	if _, err := r.takeover(ctx, killed()); err != nil {
		return 0, err
	}
	return r.succession(ctx, time.Duration(r.rng.Int64N(int64(r.lease))), f)
}
