package scenario

import (
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

func (w *world) record() *observe.Recording {
	r := w.lab.Record(w.name)
	r.From, r.Wall, r.Steps, r.Failed = w.began, w.wall, w.steps, w.failure
	return r
}

// sample reads the counters of all hosts that run, by "HOST METRIC".
func (w *world) sample() (map[string]float64, error) {
	counters := map[string]float64{}
	for _, h := range w.lab.Cluster.Hosts() {
		if h.Status() != hosts.Running {
			continue
		}
		families, err := lab.ReadMetrics(w.ctx, h)
		if err != nil {
			return nil, err
		}
		for name, family := range families {
			for _, metric := range family.GetMetric() {
				counters[h.Name()+" "+written(name, metric)] = lab.Value(metric)
			}
		}
	}
	return counters, nil
}

// written returns a metric as scripts and /metrics write it: NAME{LABEL="VALUE",…}.
func written(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}
