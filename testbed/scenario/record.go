package scenario

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// record makes the recording of what was seen until now.
func (w *world) record() *observe.Recording {
	if w.failure == "" {
		_, _ = w.sample() // what it cost in the end; an agent that can't tell is left out
	}
	now := boottime.Now()
	c := w.cluster.Hosts()[0].Config()
	r := &observe.Recording{
		Format: observe.RecordingFormat, Scenario: w.name, Algorithm: c.Algorithm, Profile: c.Profile, Quorum: c.Quorum,
		Network: "loopback", Heartbeat: int64(c.Heartbeat), Lease: int64(c.Lease), Wall: w.wall,
		From: w.began, To: now, Faults: w.faults, Steps: w.steps, Messages: w.samples, Failed: w.failure,
	}
	if w.config.Net == hosts.Namespaces {
		r.Network = "namespaces"
	}
	for i := range r.Faults {
		r.Faults[i].To = min(r.Faults[i].To, now)
	}
	voter := map[string]bool{}
	for _, name := range c.Voters {
		voter[name] = true
	}
	w.watcher.look(func(e seen) {
		for _, h := range w.cluster.Hosts() {
			r.Hosts = append(r.Hosts, observe.HostRecord{Name: h.Name(), Addr: h.Config().Bind, Voter: voter[h.Name()], Spans: e.Spans(h.Name(), now)})
		}
		r.Takeovers = e.Takeovers(w.faults)
	})
	r.Programs, _ = w.stamps()
	r.Overlaps, _ = w.overlaps("")
	return r
}

// sample reads the counters of all hosts that run, by "HOST METRIC", and keeps
// the messages by kind for the recording.
func (w *world) sample() (map[string]float64, error) {
	counters := map[string]float64{}
	for _, h := range w.cluster.Hosts() {
		if h.Status() != hosts.Running {
			continue
		}
		m := observe.MessageSample{Host: h.Name(), At: boottime.Now(), Sent: map[string]uint64{}, Received: map[string]uint64{}}
		if len(w.steps) > 0 {
			m.Step = w.steps[len(w.steps)-1].Line
		}
		metrics, err := scrape(w.ctx, h.Config().Socket)
		if err != nil {
			return nil, fmt.Errorf("read the counters of %s: %w", h.Name(), err)
		}
		for metric, x := range metrics {
			counters[h.Name()+" "+metric] = x
			if kind, ok := label(metric, "doyen_messages_total", "kind"); ok {
				if direction, _ := label(metric, "doyen_messages_total", "direction"); direction == "sent" {
					m.Sent[kind] = uint64(x)
				} else {
					m.Received[kind] = uint64(x)
				}
			}
		}
		w.samples = append(w.samples, m)
	}
	return counters, nil
}

// scrape reads an agent's metrics, by name and labels as they are written.
func scrape(ctx context.Context, socket string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://doyen/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	metrics := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(response.Body, 8<<20))
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if x, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
			metrics[lines.Text()[:at]] = x
		}
	}
	return metrics, lines.Err()
}

// label returns a label's value of a metric of that name.
func label(metric, name, key string) (string, bool) {
	if !strings.HasPrefix(metric, name+"{") {
		return "", false
	}
	_, after, ok := strings.Cut(metric, key+`="`)
	value, _, _ := strings.Cut(after, `"`)
	return value, ok
}
