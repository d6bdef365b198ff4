package report

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/doyen-election/doyen/testbed/bench"
)

type distribution struct {
	name, title string
	profile     string   // "" for the first figure, whatever its profile
	keys        []string // benchmark and unit of each figure
	names       []string // of the series
}

func distributions() []distribution {
	return []distribution{
		{"failover", "Failover: a lease is waited out", "", durations("Takeover/fault=", "kill", "cut"), []string{"kill -9", "silent cut"}},
		{"failover-local", "Failover, profile local", "local", durations("Takeover/fault=", "kill"), []string{"kill -9"}},
		{"handover", "Hand-over: nothing is waited for", "", durations("Takeover/fault=", "resign", "transfer", "sigterm"), []string{"resign", "transfer", "SIGTERM"}},
		{"cold-start", "Cold start: all agree", "", []string{"ColdStart ms/start"}, []string{"last start → agreed"}},
		{"programs", "A program is replaced", "", durations("Program/by=", "campaign/fault=kill", "run/fault=kill", "campaign/fault=resign", "campaign/fault=transfer"),
			[]string{"kill -9", "run killed", "resign", "transfer"}},
		{"query", "Asking who leads", "", []string{"Query/by=socket µs/answer", "Query/by=client µs/answer"}, []string{"GET, keep-alive", "Go client"}},
	}
}

// durations returns the keys of the figures that say how long takeovers took.
func durations(family string, faults ...string) (keys []string) {
	for _, f := range faults {
		keys = append(keys, family+f+" ms/takeover")
	}
	return keys
}

type growth struct {
	name, title, unit string
	keys              []string // benchmark and unit of each figure
	roles             []string // names of the series, before the algorithm; nil for the algorithm alone
	log               bool
}

func growths() []growth {
	roles := []string{"leader", "follower"}
	idle := func(unit string) []string { return []string{"Idle/role=leader " + unit, "Idle/role=follower " + unit} }
	return []growth{
		{"scale-failover", "Failover by kill -9", "ms", durations("Takeover/fault=", "kill"), nil, false},
		{"scale-cut", "Failover by silent cut", "ms", durations("Takeover/fault=", "cut"), nil, false},
		{"scale-handover", "Hand-over by resign", "ms", durations("Takeover/fault=", "resign"), nil, false},
		{"scale-cold-start", "Cold start: all agree", "ms", []string{"ColdStart ms-all/start", "ColdStart ms/start"}, []string{"after first start", "after last"}, true},
		{"scale-messages", "Messages of an election", "messages", []string{"Election/fault=kill messages/election", "Election/fault=resign messages/election"}, []string{"kill -9", "resign"}, true},
		{"scale-cpu", "Idle processor time", "% of a core", idle("%CPU"), roles, true},
		{"scale-memory", "Idle memory", "MiB RSS", idle("MiB-RSS"), roles, false},
		{"scale-packets", "Idle packets, in and out", "1/s", idle("packets/s"), roles, true},
		{"scale-bytes", "Idle bytes, in and out", "B/s", idle("bytes/s"), roles, true},
		{"scale-message-rate", "Idle messages, in and out", "1/s", idle("messages/s"), roles, true},
	}
}

func charts(r bench.Report) []chart {
	var all []chart
	figures := r.Figures()
	for _, d := range distributions() {
		if c, ok := d.chart(figures); ok {
			all = append(all, c)
		}
	}
	for _, g := range growths() {
		if c, ok := g.chart(figures); ok {
			all = append(all, c)
		}
	}
	return all
}

func (d distribution) chart(figures []bench.Figure) (chart, bool) {
	c := chart{name: d.name, title: d.title, y: "share at or below", shares: true}
	var all [][]float64
	for i, key := range d.keys {
		k := slices.IndexFunc(figures, func(f bench.Figure) bool {
			return f.Name+" "+f.Unit == key && (d.profile == "" || f.On.Profile == d.profile)
		})
		if k < 0 {
			continue
		}
		f := figures[k]
		if len(all) == 0 {
			c.x, _, _ = strings.Cut(f.Unit, "/")
			c.limit = bound(f)
			c.title += fmt.Sprintf(" (%s)", f.On)
		}
		c.series, all = append(c.series, spread(d.names[i], f.Samples)), append(all, f.Samples)
	}
	c.logX = wide(all...)
	return c, len(all) > 0
}

// rugMost is how many single samples a chart shows below its curves.
const rugMost = 200

// spread is the series of how samples are distributed. If they are few, it shows each of them.
func spread(name string, samples []float64) series {
	s := series{name: fmt.Sprintf("%s, n = %d", name, len(samples)), points: ecdf(samples), steps: true}
	if len(samples) <= rugMost {
		s.rug = samples
	}
	return s
}

// bound returns a figure's target, or 0 if it is too far away to be drawn.
func bound(f bench.Figure) float64 {
	if len(f.Targets) == 0 || f.Targets[0].AtMost > 8*f.Value("max") {
		return 0
	}
	return f.Targets[0].AtMost
}

func (g growth) chart(figures []bench.Figure) (chart, bool) {
	c := chart{name: g.name, title: g.title, x: "agents", y: g.unit, logX: true, logY: g.log, fromY0: !g.log}
	several := slices.ContainsFunc(figures, func(f bench.Figure) bool { return f.On.Profile != figures[0].On.Profile })
	for i, key := range g.keys {
		for _, f := range figures {
			if f.Name+" "+f.Unit != key {
				continue
			}
			name := f.On.Algorithm
			if several { // else all have the same profile
				name += ", " + f.On.Profile
			}
			if g.roles != nil {
				name = g.roles[i] + ", " + name
			}
			k := slices.IndexFunc(c.series, func(s series) bool { return s.name == name })
			if k < 0 {
				k, c.series = len(c.series), append(c.series, series{name: name})
			}
			s, x, median := &c.series[k], float64(f.On.Agents), f.Value("median")
			s.points = append(s.points, plotter.XY{X: x, Y: median})
			s.spread = append(s.spread, struct{ Low, High float64 }{median - f.Value("min"), f.Value("p99") - median})
			if !slices.Contains(c.ticks, x) {
				c.ticks = append(c.ticks, x)
			}
			c.logY = c.logY && f.Value("min") > 0
		}
	}
	return c, len(c.ticks) > 1
}
