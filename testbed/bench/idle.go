package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/testbed/hosts"
)

// cost is what one agent takes of the machine while nothing happens.
type cost struct {
	rssMiB, pssMiB float64
	cpuPercent     float64 // of one core
}

const (
	idleSettle = 5 * time.Second // for what a start costs to be over
	idleWindow = 20 * time.Second
)

// idleCosts returns what the leader and each follower cost while nobody asks
// them anything. It is measured on Linux only.
func (b *bench) idleCosts(ctx context.Context) (leader, followers []cost, err error) {
	r, err := newRig(ctx, b.config(b.o.Profile), 0, b.rng)
	if err != nil {
		return nil, nil, err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.unwatch()
	b.progress("idle, settling", 0, 0)
	if err := sleep(ctx, idleSettle); err != nil {
		return nil, nil, err
	}
	before, at, err := readCPU(r.cluster.Hosts())
	if err != nil {
		return nil, nil, err
	}
	b.progress(fmt.Sprintf("idle, measuring for %s", idleWindow), 0, 0)
	if err := sleep(ctx, idleWindow); err != nil {
		return nil, nil, err
	}
	after, till, err := readCPU(r.cluster.Hosts())
	if err != nil {
		return nil, nil, err
	}
	for i, h := range r.cluster.Hosts() {
		c := cost{cpuPercent: 100 * (after[i] - before[i]) / till.Sub(at).Seconds()}
		if c.rssMiB, c.pssMiB, err = readMemory(h.PID()); err != nil {
			return nil, nil, err
		}
		if h.Name() == a.Leader {
			leader = append(leader, c)
		} else {
			followers = append(followers, c)
		}
	}
	return leader, followers, nil
}

// readCPU returns the processor time that each agent has had, in seconds. It
// sums the scheduler's nanoseconds of all threads: the process's own counter
// has steps of 10 ms, which is much for an idle agent.
func readCPU(all []*hosts.Host) ([]float64, time.Time, error) {
	var used []float64
	for _, h := range all {
		threads, err := procfs.AllThreads(h.PID())
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("read the processor time of %s: %w", h.Name(), err)
		}
		sum := 0.0
		for _, t := range threads {
			s, err := t.Schedstat()
			if err != nil {
				return nil, time.Time{}, fmt.Errorf("read the processor time of %s: %w", h.Name(), err)
			}
			sum += time.Duration(s.RunningNanoseconds).Seconds()
		}
		used = append(used, sum)
	}
	return used, time.Now(), nil
}

// readMemory returns what a process has resident, in MiB: all of it, and with
// shared pages divided among those that share them.
func readMemory(pid int) (rss, pss float64, err error) {
	const mib = 1 << 20
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	maps, err := p.ProcSMapsRollup()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return float64(status.VmRSS) / mib, float64(maps.Pss) / mib, nil
}

func canMeasureIdle() bool { return runtime.GOOS == "linux" }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
