package bench

import (
	"context"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// cut is a fault of the network: the leader's packets are lost, both ways, while
// its links stay up and nobody is told.
func cut() fault {
	return fault{
		deal: func(_ context.Context, r *rig, leader *hosts.Host) (election.Instant, error) {
			return r.cluster.Cut([]string{leader.Name()}, nil, hosts.BothWays)
		},
		mend: func(r *rig) error {
			_, err := r.cluster.Heal()
			return err
		},
	}
}

func (b *bench) cut(ctx context.Context) error {
	if b.o.Net != hosts.Namespaces {
		b.note("the leader cut off: hosts that share a loopback interface can't be cut off, see --netns")
		return nil
	}
	took, err := b.takeovers(ctx, b.o.Profile, "silent cut", max(fewestRounds, b.o.Rounds*3/10), cut())
	target := b.small(&Target{ofP99, millis(b.config(b.o.Profile).Lease()) + slack})
	b.add("cut", "leader cut off silently → new leader", "ms", target, took)
	return err
}
