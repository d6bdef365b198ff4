package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

func (l *Lab) Record(name string) *observe.Recording {
	now := boottime.Now()
	c := l.Cluster.Hosts()[0].Config()
	r := &observe.Recording{
		Scenario: name, Algorithm: c.Algorithm, Profile: c.Profile, Quorum: c.Quorum,
		Network: "loopback", Wall: l.wall, From: l.began, To: now,
	}
	if l.c.Net == hosts.Namespaces {
		r.Network = "namespaces"
	}
	r.Programs, _ = l.Spans()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Faults = slices.Clone(l.faults)
	for i := range r.Faults {
		r.Faults[i].To = min(r.Faults[i].To, now)
	}
	for _, h := range l.Cluster.Hosts() {
		r.Hosts = append(r.Hosts, observe.HostRecord{Name: h.Name(),
			Voter: slices.Contains(c.Voters, h.Name()), Spans: l.seen.Spans(h.Name(), now)})
	}
	r.Takeovers = l.seen.Takeovers(l.faults)
	r.Overlaps = append(l.seen.Overlaps(now), observe.ProgramOverlaps(r.Programs)...)
	return r
}

// Account lists the newest n things that were seen, or all if n is 0, in the order of their instants. Each line
// starts with how long ago that was.
func (l *Lab) Account(n int) string {
	type seen struct {
		at   election.Instant
		text string
	}
	var all []seen
	r := l.Record("")
	for _, f := range r.Faults {
		where := hosts.Short(f.Where)
		if all = append(all, seen{f.From, strings.TrimSuffix("** "+f.What+" "+where+", "+f.Detail, ", ")}); f.To < r.To {
			all = append(all, seen{f.To, "** " + f.What + " of " + where + " has ended"})
		}
	}
	for _, e := range l.Exits() {
		all = append(all, seen{e.At, e.Host + ": its process ended, " + e.How})
	}
	for _, h := range r.Hosts {
		for _, s := range h.Spans {
			of := ""
			if s.Election != string(election.Default) {
				of = " " + s.Election
			}
			all = append(all, seen{s.From, h.Name + of + ": " + s.String()})
		}
	}
	for _, p := range r.Programs {
		all = append(all, seen{p.From, fmt.Sprintf("program %s on %s: acts in term %d, for %s", p.Program, p.Host, p.Term, p.To.Sub(p.From))})
	}
	for _, p := range l.Programs() {
		if a := p.Acting(); a.Ended != "" {
			all = append(all, seen{a.Since, "program " + p.Name + ": it ended, " + a.Ended})
		}
	}
	slices.SortStableFunc(all, func(a, b seen) int { return cmp.Compare(a.at, b.at) })
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	text := "what was seen, in ms before now:\n"
	for _, x := range all {
		text += fmt.Sprintf("%9.1f  %s\n", float64(r.To.Sub(x.at))/float64(time.Millisecond), x.text)
	}
	return text
}

// KeepLogs copies the logs of agents and programs, and Account, to a folder. An agent that was
// never started has no log.
func (l *Lab) KeepLogs(dir string) error {
	errs := []error{os.MkdirAll(dir, 0o755)}
	keep := func(name, text string) {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, h := range l.Cluster.Hosts() {
		text, err := os.ReadFile(h.Log())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, err)
		keep(h.Name()+".log", string(text))
	}
	for _, p := range l.Programs() {
		l.mu.Lock()
		text := strings.Join(p.output, "\n") + "\n"
		l.mu.Unlock()
		keep("program-"+p.Name+".log", text)
	}
	keep("seen.txt", l.Account(0))
	return errors.Join(errs...)
}

type Metrics map[string]*dto.MetricFamily

// ReadMetrics reads the metrics of an agent from its socket.
func ReadMetrics(ctx context.Context, h *hosts.Host) (m Metrics, err error) {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	text, err := c.Get(ctx, "/metrics")
	if err == nil {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		m, err = parser.TextToMetricFamilies(bytes.NewReader(text))
	}
	return m, wrap.Error(err, "read the metrics of %s", h.Name())
}

// By returns one sum of a metric for each value of the label. It counts only samples that have
// all the labels in with, each written KEY=VALUE.
func (m Metrics) By(name, label string, with ...string) map[string]float64 {
	sum := map[string]float64{}
	for _, metric := range m[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range metric.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if !slices.ContainsFunc(with, func(w string) bool { key, value, _ := strings.Cut(w, "="); return labels[key] != value }) {
			sum[labels[label]] += Value(metric)
		}
	}
	return sum
}

// Sum returns the sum of a metric over the samples that By would count.
func (m Metrics) Sum(name string, with ...string) float64 { return m.By(name, "", with...)[""] }

// Value returns what a counter or a gauge shows.
func Value(m *dto.Metric) float64 {
	if c := m.GetCounter(); c != nil {
		return c.GetValue()
	}
	return m.GetGauge().GetValue()
}
