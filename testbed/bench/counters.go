package bench

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/doyen-election/doyen/testbed/hosts"
)

// readMetrics returns an agent's own counters, from its socket.
func readMetrics(ctx context.Context, socket string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://d/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the metrics: %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	return families, nil
}

// label of a metric; "" if it has none of that name.
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// counted is how many messages of each kind were sent.
type counted map[string]float64

// sentMessages sums what these agents have sent since they started.
func sentMessages(ctx context.Context, all []*hosts.Host) (counted, error) {
	sum := counted{}
	for _, h := range all {
		families, err := readMetrics(ctx, h.Config().Socket)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name(), err)
		}
		for _, m := range families["doyen_messages_total"].GetMetric() {
			if label(m, "direction") == "sent" {
				sum[label(m, "kind")] += m.GetCounter().GetValue()
			}
		}
	}
	return sum, nil
}

// since returns what was sent after before, heartbeats and their answers aside:
// they go on all the time.
func (c counted) since(before counted) counted {
	d := counted{}
	for kind, n := range c {
		if n -= before[kind]; n != 0 && !strings.HasPrefix(kind, "Heartbeat") {
			d[kind] = n
		}
	}
	return d
}

func (c counted) total() float64 {
	sum := 0.0
	for n := range maps.Values(c) {
		sum += n
	}
	return sum
}

// mean of several counts, kind by kind.
func mean(all []counted) map[string]float64 {
	m := map[string]float64{}
	for _, c := range all {
		for kind, n := range c {
			m[kind] += n / float64(len(all))
		}
	}
	return m
}
