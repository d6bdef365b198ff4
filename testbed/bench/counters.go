package bench

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type counted map[string]float64

type counter struct {
	counting []*hosts.Host // without an agent that the fault kills: its count is lost
	before   counted
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

// read returns what was sent until all agree. It does not count heartbeats and their answers,
// which are sent all the time.
func (c *counter) read(ctx context.Context, r *rig) (counted, error) {
	if _, err := r.agree(ctx); err != nil {
		return nil, err
	}
	if err := observe.Sleep(ctx, afterAgreement); err != nil {
		return nil, err
	}
	after, err := sentMessages(ctx, c.counting)
	for kind := range after {
		if after[kind] -= c.before[kind]; after[kind] == 0 || strings.HasPrefix(kind, "Heartbeat") {
			delete(after, kind)
		}
	}
	return after, err
}

func sentMessages(ctx context.Context, all []*hosts.Host) (counted, error) {
	sum := counted{}
	for _, h := range all {
		m, err := lab.ReadMetrics(ctx, h)
		if err != nil {
			return nil, err
		}
		for kind, n := range m.By("doyen_messages_total", "kind", "direction=sent") {
			sum[kind] += n
		}
	}
	return sum, nil
}

// addCounts reports the messages of elections: all of them, and of each kind that occurred.
func (b *bench) addCounts(name string, elections []counted) {
	all := counted{}
	for _, sent := range elections {
		maps.Copy(all, sent)
	}
	for _, sent := range elections {
		sum := 0.0
		for _, kind := range slices.Sorted(maps.Keys(all)) {
			sum += sent[kind]
			b.add(name+"/kind="+kind, value{Value: sent[kind], Unit: perElection})
		}
		b.add(name, value{Value: sum, Unit: perElection})
	}
}
