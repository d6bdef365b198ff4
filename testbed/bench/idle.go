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
	traffic        []value // per second
}

const (
	idleSettle = 5 * time.Second // after that the costs of the start have ended
	busySettle = time.Minute     // the same for agents that are never idle, see internal/base/footprint
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
	return b.quiet(ctx, func(r *rig, leader *hosts.Host) error {
		all := r.Cluster.Hosts()
		each, err := b.costsOf(ctx, all, "idle", idleSettle)
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

func (b *bench) costsOf(ctx context.Context, all []*hosts.Host, what string, settle time.Duration) (costs []cost, err error) {
	b.progress(what+", settling", 0, 0)
	if err := observe.Sleep(ctx, min(settle, 3*b.window())); err != nil {
		return nil, err
	}
	sent, err := b.readTraffic(ctx, all)
	if err != nil {
		return nil, err
	}
	before, at, err := readCPU(all)
	if err != nil {
		return nil, err
	}
	b.progress(fmt.Sprintf("%s, measuring for %s", what, b.window()), 0, 0)
	if err := observe.Sleep(ctx, b.window()); err != nil {
		return nil, err
	}
	after, till, err := readCPU(all)
	if err != nil {
		return nil, err
	}
	sentAfter, err := b.readTraffic(ctx, all)
	if err != nil {
		return nil, err
	}
	for i, h := range all {
		seconds := till.Sub(at).Seconds()
		c := cost{cpuPercent: 100 * (after[i] - before[i]) / seconds, traffic: sentAfter[i]}
		for k := range c.traffic {
			c.traffic[k].Value = (c.traffic[k].Value - sent[i][k].Value) / seconds
		}
		if c.rssMiB, c.pssMiB, err = readMemory(h.PID()); err != nil {
			return nil, err
		}
		costs = append(costs, c)
	}
	return costs, nil
}

func (b *bench) readTraffic(ctx context.Context, all []*hosts.Host) ([][]value, error) {
	var found [][]value
	for _, h := range all {
		m, err := lab.ReadMetrics(ctx, h)
		if err != nil {
			return nil, err
		}
		// These are an election's messages with heartbeats, and their bytes before encryption.
		values := []value{{Value: m.Sum("doyen_messages_total"), Unit: "messages/s"}, {Value: m.Sum("doyen_transport_bytes_total"), Unit: "message-bytes/s"}}
		if b.o.Net == hosts.Namespaces { // otherwise agents share a loopback interface
			packets, bytes, err := readInterfaces(h.PID())
			if err != nil {
				return nil, fmt.Errorf("read the traffic of %s: %w", h.Name(), err)
			}
			values = append(values, value{Value: packets, Unit: "packets/s"}, value{Value: bytes, Unit: "bytes/s"})
		}
		found = append(found, values)
	}
	return found, nil
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

// readCPU returns the processor time that each agent has had, in seconds. It sums the
// scheduler's nanoseconds of all threads, since the process's own counter has steps of 10 ms,
// too coarse for an idle agent.
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
