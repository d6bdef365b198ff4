package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
)

const (
	// atOnceVoters is how many of the agents are voters: as few as people use beside many
	// agents, and fewer than the testbed usually has.
	atOnceVoters = 5
	// atOncePatience is how long agents that all start at once may take to agree, and then how
	// long each may take to be connected to all.
	atOncePatience = 240 * time.Second
	// askAtOnce is how often an agent is asked whether it is connected to all others.
	askAtOnce = 250 * time.Millisecond
)

// atOnce starts all agents as fast as the machine makes processes. It measures how long they
// take to agree, and until each is connected to each.
func (b *bench) atOnce(ctx context.Context) error {
	return b.repeat("StartAtOnce", b.rounds(1), func() (err error) {
		c := b.config()
		voters := c.Names()[:min(atOnceVoters, c.Agents)]
		c.Adjust = func(_ int, a *settings.Config) { a.Voters = voters }
		r, err := newRig(ctx, c, 0, b.rng)
		if err != nil {
			return err
		}
		defer b.finish(r, &err)
		a, err := r.Agree(ctx, atOncePatience)
		if err != nil {
			return err
		}
		for _, h := range r.Cluster.Hosts() {
			failed, err := r.connected(ctx, h, b.on.Agents-1)
			if err != nil {
				return err
			}
			b.add("StartAtOnce", value{Value: failed, Unit: "failed-dials/agent"})
		}
		connected := boottime.Now()
		misled, err := countMisled(r.Cluster.Hosts())
		b.add("StartAtOnce", took(r.started.Sub(r.first), "ms-started/start"), took(a.At.Sub(r.first), "ms-agreed/start"),
			took(connected.Sub(r.first), "ms-connected/start"), value{Value: misled, Unit: "misled-agents"})
		return err
	})
}

// countMisled counts the agents that have logged a refusal.
func countMisled(all []*hosts.Host) (misled float64, err error) {
	for _, h := range all {
		log, err := os.ReadFile(h.Log())
		if err != nil {
			return 0, fmt.Errorf("read what %s logged: %w", h.Name(), err)
		}
		if strings.Contains(string(log), "code=refused_") {
			misled++
		}
	}
	return misled, nil
}

// connected waits until the agent is connected to that many peers, and returns how many of its
// dials have failed.
func (r *rig) connected(ctx context.Context, h *hosts.Host, peers int) (failed float64, err error) {
	what := fmt.Sprintf("%s to be connected to %d peers", h.Name(), peers)
	err = until(ctx, what, atOncePatience, askAtOnce, func(ctx context.Context) (bool, error) {
		m, err := lab.ReadMetrics(ctx, h)
		failed = m.Sum("doyen_transport_dials_total", "outcome=failed")
		return int(m.Sum("doyen_peers_connected")) >= peers, err
	})
	return failed, err
}
