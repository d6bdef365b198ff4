package bench

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Report has the results of a run: one line per round, as Go's benchmarks write it.
type Report struct {
	Facts   []string // about the run, one line each: which build, when, what could not be measured
	Results []Result
}

// Result is what one round measured of one figure.
type Result struct {
	benchfmt.Result
	figure string
	on     Point
}

type Point struct {
	Agents    int
	Algorithm string
	Profile   string
}

func (p Point) String() string {
	return fmt.Sprintf("%d agents, %s, %s", p.Agents, p.Algorithm, p.Profile)
}

const (
	pointFormat = "/agents=%d/algorithm=%s/profile=%s"
	// buildKey is the key that says which of two builds a result is about.
	buildKey           = "build"
	buildOld, buildNew = "before", "after"
)

type Figure struct {
	Name, Unit string
	On         Point
	What       string // a description
	Targets    []Target
	Samples    []float64 // in ascending order
}

// Target is the upper limit of a statistic.
type Target struct {
	Of     string // median, p90, p95, p99 or max
	AtMost float64
}

const (
	ofMedian = "median"
	ofP90    = "p90"
	ofP95    = "p95"
	ofP99    = "p99"
	ofMin    = "min"
	ofMax    = "max"
)

func (r Report) Figures() []Figure {
	var all []Figure
	for _, result := range r.Results {
		for _, v := range result.Values {
			same := func(f Figure) bool { return f.Name == result.figure && f.Unit == v.Unit && f.On == result.on }
			i := slices.IndexFunc(all, same)
			if i < 0 {
				m := measureOf(result.figure, v.Unit, result.on)
				i, all = len(all), append(all, Figure{Name: result.figure, Unit: v.Unit, On: result.on, What: m.what, Targets: m.targets})
			}
			all[i].Samples = append(all[i].Samples, v.Value)
		}
	}
	for _, f := range all {
		slices.Sort(f.Samples)
	}
	return all
}

// Value returns a statistic of the samples: median, p90, p95, p99, min or max. Percentiles are nearest ranks.
func (f Figure) Value(of string) float64 {
	n := len(f.Samples)
	percent := map[string]int{ofP90: 90, ofP95: 95, ofP99: 99}[of]
	switch {
	case percent > 0:
		return f.Samples[(percent*n+99)/100-1]
	case of == ofMax:
		return f.Samples[n-1]
	case of == ofMin:
		return f.Samples[0]
	}
	return (f.Samples[(n-1)/2] + f.Samples[n/2]) / 2
}

// Unmet returns the targets that are not met.
func (f Figure) Unmet() []Target {
	return slices.DeleteFunc(slices.Clone(f.Targets), func(t Target) bool { return f.Value(t.Of) <= t.AtMost })
}

// Missed returns the figures that do not meet a target, one line each.
func (r Report) Missed() []string {
	var missed []string
	for _, f := range r.Figures() {
		for _, t := range f.Unmet() {
			missed = append(missed, fmt.Sprintf("%s (%s): %s is %s %s, at most %s is wanted", f.What, f.On, t.Of, Digits(f.Value(t.Of)), f.Unit, Digits(t.AtMost)))
		}
	}
	return missed
}

// Builds returns the results of the newer of two builds, and those of the older one. If there
// is only one build, before is nil.
func (r Report) Builds() (after Report, before *Report) {
	of := func(build string) Report {
		one := r
		one.Results = slices.DeleteFunc(slices.Clone(r.Results), func(x Result) bool { return x.GetConfig(buildKey) != build })
		return one
	}
	if old := of(buildOld); len(old.Results) > 0 {
		return of(buildNew), &old
	}
	return r, nil
}

func (r Report) Config() []string {
	var all []string
	if len(r.Results) > 0 {
		for _, c := range r.Results[0].Config {
			if c.Key != buildKey {
				all = append(all, c.Key+": "+string(c.Value))
			}
		}
	}
	return all
}

// machine describes this machine, as far as that is known. The load is not in config, because benchstat
// does not compare results with different configurations.
func machine() (config []benchfmt.Config, load string) {
	add := func(key, value string) {
		if value != "" {
			config = append(config, benchfmt.Config{Key: key, Value: []byte(value), File: true})
		}
	}
	add("goos", runtime.GOOS)
	add("goarch", runtime.GOARCH)
	add("go", runtime.Version())
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		add("kernel", unix.ByteSliceToString(name.Release[:]))
	}
	add("cpus", strconv.Itoa(runtime.NumCPU()))
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return config, "unknown"
	}
	if memory, err := fs.Meminfo(); err == nil && memory.MemTotalBytes != nil {
		add("memory", fmt.Sprintf("%d MiB", *memory.MemTotalBytes>>20))
	}
	if l, err := fs.LoadAvg(); err == nil {
		load = fmt.Sprintf("%.2f", l.Load1)
	}
	return config, load
}

const factMark = "# "

func (r Report) Write(w io.Writer) error {
	var text bytes.Buffer
	for _, f := range r.Facts {
		fmt.Fprintln(&text, factMark+f)
	}
	fmt.Fprintf(&text, "\nUnit %s better=higher\n", answersPerSecond)
	out := benchfmt.NewWriter(&text)
	for _, result := range r.Results {
		if err := out.Write(&result.Result); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	_, err := w.Write(text.Bytes())
	return wrap.Error(err, "write the report")
}
