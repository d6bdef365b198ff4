package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type cost struct {
	rssMiB, pssMiB float64
	cpuPercent     float64 // of one core
	sleeps         float64 // of the main thread, per minute
	traffic        []value // per second
}

const (
	idleSettle = 5 * time.Second // how long to wait until the costs of an agent's start have ended
	busySettle = time.Minute     // how long busy agents need until they return the start's memory, see internal/base/footprint
	idleWindow = 20 * time.Second
)

func (b *bench) window() time.Duration {
	if b.idleTime > 0 {
		return b.idleTime
	}
	return idleWindow
}

func (b *bench) idle(ctx context.Context) (err error) {
	if b.idled {
		return nil
	}
	return b.quiet(ctx, b.config(), func(r *rig, leader *hosts.Host) error {
		all := r.Cluster.Hosts()
		each, err := b.costsOf(ctx, all, "idle", idleSettle, b.window())
		if err != nil {
			return err
		}
		for i, h := range all {
			name := "Idle/role=follower"
			if h == leader {
				name = "Idle/role=leader"
			}
			c := each[i]
			b.add(name, append([]value{{Value: c.rssMiB, Unit: rss}, {Value: c.pssMiB, Unit: pss}, {Value: c.cpuPercent, Unit: cpu}}, c.traffic...)...)
		}
		b.idled = true
		return nil
	})
}

func (b *bench) costsOf(ctx context.Context, all []*hosts.Host, what string, settle, window time.Duration) (costs []cost, err error) {
	b.progress(fmt.Sprintf("%s, settling, then measuring for %s", what, window), 0, 0)
	if err := observe.Sleep(ctx, min(settle, 3*b.window())); err != nil {
		return nil, err
	}
	before, err := b.usages(ctx, all)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := observe.Sleep(ctx, window); err != nil {
		return nil, err
	}
	lasted := time.Since(began)
	after, err := b.usages(ctx, all)
	if err != nil {
		return nil, err
	}
	for i, h := range all {
		used := after[i]
		c := cost{cpuPercent: 100 * (used.cpu - before[i].cpu).Seconds() / lasted.Seconds(), traffic: used.traffic,
			sleeps: (used.sleeps - before[i].sleeps) / lasted.Minutes()}
		for k := range c.traffic {
			c.traffic[k].Value = (c.traffic[k].Value - before[i].traffic[k].Value) / lasted.Seconds()
		}
		if c.rssMiB, c.pssMiB, err = readMemory(h.PID()); err != nil {
			return nil, err
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// usage is what a host's newest process has used so far.
type usage struct {
	cpu     time.Duration // the sum over all threads by the scheduler, since the count for the process has steps of 10 ms
	sleeps  float64       // how often its main thread has gone to sleep
	traffic []value
}

func (b *bench) usages(ctx context.Context, all []*hosts.Host) (each []usage, err error) {
	for _, h := range all {
		var u usage
		if u.traffic, err = b.readTraffic(ctx, h); err == nil {
			err = u.read(h.PID())
		}
		if err != nil {
			return nil, fmt.Errorf("read what %s uses: %w", h.Name(), err)
		}
		each = append(each, u)
	}
	return each, nil
}

func (u *usage) read(pid int) error {
	threads, err := procfs.AllThreads(pid)
	for _, t := range threads {
		s, err := t.Schedstat()
		if err != nil {
			return err
		}
		u.cpu += time.Duration(s.RunningNanoseconds)
	}
	if err != nil || len(threads) == 0 {
		return err
	}
	status, err := threads[0].NewStatus()
	u.sleeps = float64(status.VoluntaryCtxtSwitches)
	return err
}

func (b *bench) readTraffic(ctx context.Context, h *hosts.Host) ([]value, error) {
	m, err := lab.ReadMetrics(ctx, h)
	if err != nil {
		return nil, err
	}
	// All messages of elections, heartbeats included, and their bytes before encryption.
	values := []value{{Value: m.Sum("doyen_messages_total"), Unit: "messages/s"}, {Value: m.Sum("doyen_transport_bytes_total"), Unit: "message-bytes/s"}}
	if b.o.Net == hosts.Namespaces { // without namespaces the agents share one interface, and its counters
		packets, bytes, err := readInterfaces(h.PID())
		if err != nil {
			return nil, err
		}
		values = append(values, value{Value: packets, Unit: "packets/s"}, value{Value: bytes, Unit: "bytes/s"})
	}
	return values, nil
}

// readInterfaces reads the counters of the process's interfaces, without loopback.
func readInterfaces(pid int) (packets, bytes float64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	lines, err := p.NetDev()
	if err != nil {
		return 0, 0, err
	}
	for name, l := range lines {
		if name != "lo" {
			packets += float64(l.RxPackets + l.TxPackets)
			bytes += float64(l.RxBytes + l.TxBytes)
		}
	}
	return packets, bytes, nil
}

// readMemory returns the resident memory of a process in MiB: rss counts all of it, pss divides
// shared pages among the processes that share them.
func readMemory(pid int) (rss, pss float64, err error) {
	const mib = 1 << 20
	p, err := procfs.NewProc(pid)
	if err == nil {
		var status procfs.ProcStatus
		status, err = p.NewStatus()
		rss = float64(status.VmRSS) / mib
	}
	if err == nil {
		var maps procfs.ProcSMapsRollup
		maps, err = p.ProcSMapsRollup()
		pss = float64(maps.Pss) / mib
	}
	if err != nil {
		err = fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return rss, pss, err
}
