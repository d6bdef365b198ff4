package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// keepers measures what keepers cost while nothing happens.
func (b *bench) keepers(ctx context.Context) error {
	return b.quietOf(ctx, b.keeping(), func(r *rig, _ *hosts.Host) error {
		if err := observe.Sleep(ctx, min(idleSettle, 3*b.window())); err != nil {
			return err
		}
		all := r.Cluster.Hosts()
		before, err := switches(all)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := observe.Sleep(ctx, 3*b.window()); err != nil {
			return err
		}
		after, err := switches(all)
		if err != nil {
			return err
		}
		for i, h := range all {
			_, shared, err := readMemory(h.PID())
			if err != nil {
				return err
			}
			b.add("Keeper", value{Value: shared, Unit: pss}, value{Value: (after[i] - before[i]) / time.Since(began).Minutes(), Unit: "checks/min"})
		}
		return nil
	})
}

// switches returns how often the main thread of each host's newest process has gone to sleep.
func switches(all []*hosts.Host) ([]float64, error) {
	var counts []float64
	for _, h := range all {
		p, err := procfs.NewProc(h.PID())
		if err != nil {
			return nil, fmt.Errorf("read the switches of %s: %w", h.Name(), err)
		}
		status, err := p.NewStatus()
		if err != nil {
			return nil, fmt.Errorf("read the switches of %s: %w", h.Name(), err)
		}
		counts = append(counts, float64(status.VoluntaryCtxtSwitches))
	}
	return counts, nil
}
