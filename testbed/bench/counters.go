package bench

import (
	"context"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type counter struct {
	counting []*hosts.Host // without an agent that the fault kills: its count is lost
	before   float64
}

// around returns the fault with the counters read just before it.
func (c *counter) around(f fault) fault {
	deal := f.deal
	f.deal = func(r *rig, ctx context.Context, leader *hosts.Host) (at election.Instant, err error) {
		c.counting = slices.DeleteFunc(slices.Clone(r.Cluster.Hosts()), func(h *hosts.Host) bool { return f.ends && h == leader })
		if c.before, err = sentMessages(ctx, c.counting); err != nil {
			return 0, err
		}
		return deal(r, ctx, leader)
	}
	return f
}

// read returns how many messages were sent until all agree.
func (c *counter) read(ctx context.Context, r *rig) (float64, error) {
	if _, err := r.agree(ctx); err != nil {
		return 0, err
	}
	if err := observe.Sleep(ctx, afterAgreement); err != nil {
		return 0, err
	}
	after, err := sentMessages(ctx, c.counting)
	return after - c.before, err
}

// sentMessages does not count heartbeats and their answers, which are sent all the time.
func sentMessages(ctx context.Context, all []*hosts.Host) (sum float64, err error) {
	for _, h := range all {
		m, err := lab.ReadMetrics(ctx, h)
		if err != nil {
			return 0, err
		}
		for kind, n := range m.By("doyen_messages_total", "kind", "direction=sent") {
			if !strings.HasPrefix(kind, "Heartbeat") {
				sum += n
			}
		}
	}
	return sum, nil
}
