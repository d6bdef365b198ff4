package report

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/doyen-election/doyen/testbed/bench"
)

// distribution is a chart of how a few figures spread.
type distribution struct {
	name, title string
	keys        []string // of bench results
	names       []string // of the series
}

func distributions() []distribution {
	return []distribution{
		{"failover", "Failover: a lease is waited out", []string{"kill", "cut"}, []string{"kill -9", "silent cut"}},
		{"failover-local", "Failover, profile local", []string{"kill_local"}, []string{"kill -9"}},
		{"handover", "Hand-over: nothing is waited for", []string{"resign", "transfer", "sigterm"}, []string{"resign", "transfer", "SIGTERM"}},
		{"cold-start", "Cold start: all agree", []string{"cold_start"}, []string{"last start → agreed"}},
		{"programs", "A program is replaced", []string{"program_kill", "run_kill", "program_resign", "program_transfer"},
			[]string{"kill -9", "run killed", "resign", "transfer"}},
		{"query", "Asking who leads", []string{"query", "query_client"}, []string{"GET, keep-alive", "Go client"}},
	}
}

// growth is a chart of what more agents cost.
type growth struct {
	name, title, unit string
	keys              []string // of bench results
	roles             []string // what the series are called, with the algorithm; "" for the algorithm alone
	log               bool
}

func growths() []growth {
	return []growth{
		{"scale-failover", "Failover by kill -9", "ms", []string{"kill"}, []string{""}, false},
		{"scale-cut", "Failover by silent cut", "ms", []string{"cut"}, []string{""}, false},
		{"scale-handover", "Hand-over by resign", "ms", []string{"resign"}, []string{""}, false},
		{"scale-cold-start", "Cold start: all agree", "ms", []string{"cold_start_all", "cold_start"}, []string{"after first start", "after last"}, true},
		{"scale-messages", "Messages of an election", "messages", []string{"messages_kill", "messages_resign"}, []string{"kill -9", "resign"}, true},
		{"scale-cpu", "Idle processor time", "% of a core", []string{"idle_cpu_leader", "idle_cpu_follower"}, []string{"leader", "follower"}, true},
		{"scale-memory", "Idle memory", "MiB RSS", []string{"idle_rss_leader", "idle_rss_follower"}, []string{"leader", "follower"}, false},
		{"scale-packets", "Idle packets, in and out", "1/s", []string{"packets_leader", "packets_follower"}, []string{"leader", "follower"}, true},
		{"scale-bytes", "Idle bytes, in and out", "B/s", []string{"bytes_leader", "bytes_follower"}, []string{"leader", "follower"}, true},
		{"scale-message-rate", "Idle messages, in and out", "1/s", []string{"messages_leader", "messages_follower"}, []string{"leader", "follower"}, true},
	}
}

// charts returns what can be drawn of a bench report.
func charts(r bench.Report) []chart {
	var all []chart
	for _, d := range distributions() {
		if c, ok := d.chart(r); ok {
			all = append(all, c)
		}
	}
	for _, g := range growths() {
		if c, ok := g.chart(r); ok {
			all = append(all, c)
		}
	}
	return all
}

// first returns the first result of that key: of several clusters, the first.
func first(r bench.Report, key string) (bench.Result, bool) {
	i := slices.IndexFunc(r.Results, func(x bench.Result) bool { return x.Key == key && len(x.Samples) > 0 })
	if i < 0 {
		return bench.Result{}, false
	}
	return r.Results[i], true
}

func (d distribution) chart(r bench.Report) (chart, bool) {
	c := chart{name: d.name, title: d.title, y: "share at or below", shares: true}
	var all [][]float64
	for i, key := range d.keys {
		x, ok := first(r, key)
		if !ok {
			continue
		}
		if len(all) == 0 {
			c.x, c.limit = x.Unit, bound(x)
			c.title += fmt.Sprintf(" (%s)", r.Point(x))
		}
		s := series{name: fmt.Sprintf("%s, n = %d", d.names[i], x.Summary.N), points: ecdf(x.Samples), steps: true}
		if len(x.Samples) <= rugMost {
			s.rug = x.Samples
		}
		c.series, all = append(c.series, s), append(all, x.Samples)
	}
	c.logX = wide(all...)
	return c, len(all) > 0
}

// rugMost is how many single samples a chart shows below its curves.
const rugMost = 200

// bound returns a result's target, if it is near enough to be drawn; else 0.
func bound(x bench.Result) float64 {
	if x.Target == nil || x.Target.AtMost <= 0 || x.Target.AtMost > 8*x.Summary.Max {
		return 0
	}
	return x.Target.AtMost
}

func (g growth) chart(r bench.Report) (chart, bool) {
	c := chart{name: g.name, title: g.title, x: "agents", y: g.unit, logX: true, logY: g.log, fromY0: !g.log}
	var numbers []float64
	for i, key := range g.keys {
		for _, line := range lines(r, key) {
			s := series{name: line[0].kind, points: plotter.XYs{}}
			if role := g.roles[i]; role != "" {
				s.name = role + ", " + s.name
			}
			for _, p := range line {
				x := float64(p.agents)
				s.points = append(s.points, plotter.XY{X: x, Y: p.summary.Median})
				s.spread = append(s.spread, struct{ Low, High float64 }{p.summary.Median - p.summary.Min, p.summary.P99 - p.summary.Median})
				if !slices.Contains(numbers, x) {
					numbers = append(numbers, x)
				}
				c.logY = c.logY && p.summary.Min > 0
			}
			c.series = append(c.series, s)
		}
	}
	c.ticks = numbers
	return c, len(numbers) > 1
}

// dot is one figure on one number of agents.
type dot struct {
	agents  int
	kind    string // of the cluster, but for its size
	summary bench.Summary
}

// lines returns a figure by the number of agents, for each algorithm and
// profile. The profile is named only if there are several.
func lines(r bench.Report, key string) [][]dot {
	var kinds []string
	byKind := map[string][]dot{}
	profiles := map[string]bool{}
	for _, x := range r.Results {
		profiles[r.Point(x).Profile] = true
	}
	for _, x := range r.Results {
		if x.Key != key || x.Summary.N == 0 {
			continue
		}
		at := r.Point(x)
		kind := at.Algorithm
		if len(profiles) > 1 {
			kind += ", " + at.Profile
		}
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], dot{at.Agents, kind, x.Summary})
	}
	var all [][]dot
	for _, kind := range kinds {
		line := byKind[kind]
		slices.SortStableFunc(line, func(a, b dot) int { return cmp.Compare(a.agents, b.agents) })
		all = append(all, line)
	}
	return all
}
