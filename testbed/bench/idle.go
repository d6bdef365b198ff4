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
	traffic        traffic // in a second
}

const (
	idleSettle = 5 * time.Second // for what a start costs to be over
	idleWindow = 20 * time.Second
)

// window is how long idling is measured for.
func (b *bench) window() time.Duration {
	if b.idleTime > 0 {
		return b.idleTime
	}
	return idleWindow
}

// idleCosts are the costs of the leader and of each follower while nobody asks
// them anything.
type idleCosts struct{ leader, followers []cost }

// measureIdle measures them, once for each cluster. It works on Linux only.
func (b *bench) measureIdle(ctx context.Context) (costs *idleCosts, err error) {
	if b.idled != nil {
		return b.idled, nil
	}
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	if err != nil {
		return nil, err
	}
	r.unwatch()
	all := r.cluster.Hosts()
	each, err := b.costsOf(ctx, all, "idle")
	if err != nil {
		return nil, err
	}
	costs = &idleCosts{}
	for i, h := range all {
		if h.Name() == a.Leader {
			costs.leader = append(costs.leader, each[i])
		} else {
			costs.followers = append(costs.followers, each[i])
		}
	}
	b.idled = costs
	return costs, nil
}

// costsOf measures what each agent takes for a while, after what a start costs
// is over.
func (b *bench) costsOf(ctx context.Context, all []*hosts.Host, what string) (costs []cost, err error) {
	b.progress(what+", settling", 0, 0)
	if err := sleep(ctx, min(idleSettle, b.window())); err != nil {
		return nil, err
	}
	sent, err := readTraffic(ctx, all, b.o.Net)
	if err != nil {
		return nil, err
	}
	before, at, err := readCPU(all)
	if err != nil {
		return nil, err
	}
	b.progress(fmt.Sprintf("%s, measuring for %s", what, b.window()), 0, 0)
	if err := sleep(ctx, b.window()); err != nil {
		return nil, err
	}
	after, till, err := readCPU(all)
	if err != nil {
		return nil, err
	}
	sentAfter, err := readTraffic(ctx, all, b.o.Net)
	if err != nil {
		return nil, err
	}
	for i, h := range all {
		seconds := till.Sub(at).Seconds()
		c := cost{cpuPercent: 100 * (after[i] - before[i]) / seconds, traffic: sentAfter[i].since(sent[i], seconds)}
		if c.rssMiB, c.pssMiB, err = readMemory(h.PID()); err != nil {
			return nil, err
		}
		costs = append(costs, c)
	}
	return costs, nil
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
