package bench

import (
	"context"
	"fmt"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/testbed/hosts"
)

// traffic is what an agent sends and receives.
type traffic struct {
	packets, bytes float64 // of its network interface, all of it; 0 without one
	messages       float64 // of elections, heartbeats included
	messageBytes   float64 // before encryption
}

// since returns the difference in a second.
func (t traffic) since(before traffic, seconds float64) traffic {
	return traffic{
		packets: (t.packets - before.packets) / seconds, bytes: (t.bytes - before.bytes) / seconds,
		messages: (t.messages - before.messages) / seconds, messageBytes: (t.messageBytes - before.messageBytes) / seconds,
	}
}

// each calls do for the leader's costs and the followers'.
func (c *idleCosts) each(do func(key, who string, all []cost)) {
	do("leader", "idle leader", c.leader)
	do("follower", "idle follower", c.followers)
}

func (b *bench) traffic(ctx context.Context) error {
	if !canMeasureIdle() {
		b.note("idle traffic: it is measured on Linux only")
		return nil
	}
	costs, err := b.measureIdle(ctx)
	if err != nil {
		return err
	}
	inside := b.o.Net == hosts.Namespaces
	if !inside {
		b.note("packets of an agent: agents that share a loopback interface can't be distinguished, see --netns")
	}
	costs.each(func(key, who string, all []cost) {
		var packets, bytes, messages, messageBytes []float64
		for _, c := range all {
			packets, bytes = append(packets, c.traffic.packets), append(bytes, c.traffic.bytes)
			messages, messageBytes = append(messages, c.traffic.messages), append(messageBytes, c.traffic.messageBytes)
		}
		if inside {
			b.add("packets_"+key, who+": packets in and out", "1/s", nil, packets)
			b.add("bytes_"+key, who+": bytes in and out", "B/s", nil, bytes)
		}
		b.add("messages_"+key, who+": messages in and out", "1/s", nil, messages)
		b.add("message_bytes_"+key, who+": bytes of messages, before encryption", "B/s", nil, messageBytes)
	})
	return nil
}

// readTraffic returns what each agent has sent and received so far.
func readTraffic(ctx context.Context, all []*hosts.Host, net hosts.Net) ([]traffic, error) {
	var found []traffic
	for _, h := range all {
		var t traffic
		if net == hosts.Namespaces {
			if err := t.readInterface(h.PID()); err != nil {
				return nil, fmt.Errorf("read the traffic of %s: %w", h.Name(), err)
			}
		}
		families, err := readMetrics(ctx, h.Config().Socket)
		if err != nil {
			return nil, fmt.Errorf("read the traffic of %s: %w", h.Name(), err)
		}
		for _, m := range families["doyen_messages_total"].GetMetric() {
			t.messages += m.GetCounter().GetValue()
		}
		for _, m := range families["doyen_transport_bytes_total"].GetMetric() {
			t.messageBytes += m.GetCounter().GetValue()
		}
		found = append(found, t)
	}
	return found, nil
}

// readInterface reads the counters of the interfaces that the process sees, its
// loopback aside.
func (t *traffic) readInterface(pid int) error {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return err
	}
	lines, err := p.NetDev()
	if err != nil {
		return err
	}
	for name, l := range lines {
		if name != "lo" {
			t.packets += float64(l.RxPackets + l.TxPackets)
			t.bytes += float64(l.RxBytes + l.TxBytes)
		}
	}
	return nil
}
