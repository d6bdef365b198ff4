package scenario

import (
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

func (w *world) record() *observe.Recording {
	if w.failure == "" {
		_, _ = w.sample() // the costs until the end; without those of an agent that can't report them
	}
	r := w.lab.Record(w.name)
	r.From, r.Wall, r.Steps, r.Messages, r.Failed = w.began, w.wall, w.steps, w.samples, w.failure
	return r
}

// sample reads the counters of all hosts that run, by "HOST METRIC". It keeps the numbers of
// messages by kind for the recording.
func (w *world) sample() (map[string]float64, error) {
	counters := map[string]float64{}
	for _, h := range w.lab.Cluster.Hosts() {
		if h.Status() != hosts.Running {
			continue
		}
		m := observe.MessageSample{Host: h.Name(), At: boottime.Now(), Sent: map[string]uint64{}, Received: map[string]uint64{}}
		if len(w.steps) > 0 {
			m.Step = w.steps[len(w.steps)-1].Line
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
		for direction, messages := range map[string]map[string]uint64{"sent": m.Sent, "received": m.Received} {
			for kind, n := range families.By("doyen_messages_total", "kind", "direction="+direction) {
				messages[kind] = uint64(n)
			}
		}
		w.samples = append(w.samples, m)
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
