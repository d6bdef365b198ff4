package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// afterAgreement is how long the last messages of an election may take, and the
// agents' counters to show them.
const afterAgreement = 1200 * time.Millisecond

// messages counts what an election costs: one that a crash sets off and one
// that a hand-over does.
func (b *bench) messages(ctx context.Context) error {
	rounds := max(fewestRounds, b.o.Rounds/10)
	for _, kind := range []struct {
		key, what string
		fault     fault
	}{
		{"messages_kill", "messages of an election, after kill -9 of the leader", killed()},
		{"messages_resign", "messages of an election, after a resignation", resigned()},
	} {
		counts, err := b.elections(ctx, kind.what, rounds, kind.fault)
		if err != nil {
			return err
		}
		var totals []float64
		for _, c := range counts {
			totals = append(totals, c.total())
		}
		b.add(kind.key, kind.what, "messages", nil, totals)
		b.report.Results[len(b.report.Results)-1].Kinds = mean(counts)
	}
	return nil
}

// elections has the leader hit by the fault, round after round, and counts the
// messages of each election that follows, heartbeats aside.
func (b *bench) elections(ctx context.Context, what string, rounds int, f fault) (counts []counted, err error) {
	r, err := b.newRig(ctx, b.o.Profile, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	for round := range rounds {
		c, err := r.countElection(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", what, round+1, err)
		}
		counts = append(counts, c)
		b.progress(what, round+1, rounds)
	}
	return counts, nil
}

func (r *rig) countElection(ctx context.Context, f fault) (counted, error) {
	var counting []*hosts.Host
	var before counted
	leader, at, err := r.deal(ctx, r.lease*21/20+afterAgreement, fault{ // what a start costs is over
		deal: func(ctx context.Context, r *rig, leader *hosts.Host) (at election.Instant, err error) {
			counting = nil
			for _, h := range r.cluster.Hosts() { // a killed agent's count is lost
				if !f.ends || h != leader {
					counting = append(counting, h)
				}
			}
			if before, err = sentMessages(ctx, counting); err != nil {
				return 0, err
			}
			return f.deal(ctx, r, leader)
		},
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.successor(ctx, at); err != nil {
		return nil, err
	}
	if _, err := r.agree(ctx); err != nil {
		return nil, err
	}
	if err := r.idle(ctx, afterAgreement); err != nil {
		return nil, err
	}
	after, err := sentMessages(ctx, counting)
	if err != nil {
		return nil, err
	}
	if f.ends {
		err = r.startAgain(ctx, leader)
	}
	return after.since(before), err
}
