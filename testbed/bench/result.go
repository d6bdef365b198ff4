package bench

import (
	"fmt"
	"slices"
	"time"
)

// Report is everything a run found.
type Report struct {
	Version string    `json:"version"` // of Doyen
	Time    time.Time `json:"time"`
	Machine Machine   `json:"machine"`
	Options Settings  `json:"options"`
	Results []Result  `json:"results"`
	Notes   []string  `json:"notes,omitempty"` // what was not measured, and why
}

// Settings are the options that a run had.
type Settings struct {
	Agents    int    `json:"agents"`
	Algorithm string `json:"algorithm"`
	Profile   string `json:"profile"`
	LeaseMS   int64  `json:"lease_ms"`
	Rounds    int    `json:"rounds"`
	Seed      uint64 `json:"seed"`
}

// Result is one thing that was measured.
type Result struct {
	Key     string    `json:"key"` // stable: compare runs by it
	What    string    `json:"what"`
	On      *Point    `json:"on,omitempty"` // nil: on what the options say
	Unit    string    `json:"unit"`
	Target  *Target   `json:"target,omitempty"` // nil: for information
	Also    []Target  `json:"also,omitempty"`   // further targets
	Summary Summary   `json:"summary"`
	Samples []float64 `json:"samples"` // at most maxSamples, evenly chosen
	// Kinds, of messages: how many there were of each kind, on average.
	Kinds map[string]float64 `json:"kinds,omitempty"`
}

// Point is a cluster that was measured.
type Point struct {
	Agents    int    `json:"agents"`
	Algorithm string `json:"algorithm"`
	Profile   string `json:"profile"`
}

func (p Point) String() string {
	return fmt.Sprintf("%d agents, %s, %s", p.Agents, p.Algorithm, p.Profile)
}

// Point is the cluster that the result was measured on.
func (r Report) Point(x Result) Point {
	if x.On != nil {
		return *x.On
	}
	return Point{r.Options.Agents, r.Options.Algorithm, r.Options.Profile}
}

// Target is what a statistic may be at most.
type Target struct {
	Of     string  `json:"of"` // median, p99 or max
	AtMost float64 `json:"at_most"`
}

func (t Target) String() string { return figure(t.AtMost) + " " + t.Of }

// Met reports whether the target is met. Nothing measured meets none.
func (r Result) Met() bool {
	return len(r.unmet()) == 0
}

// unmet returns the targets that are not met.
func (r Result) unmet() []Target {
	var all []Target
	if r.Target != nil {
		all = append(all, *r.Target)
	}
	return slices.DeleteFunc(append(all, r.Also...), func(t Target) bool {
		return r.Summary.N > 0 && r.value(t.Of) <= t.AtMost
	})
}

func (r Result) value(of string) float64 {
	switch of {
	case ofP99:
		return r.Summary.P99
	case ofMax:
		return r.Summary.Max
	}
	return r.Summary.Median
}

const (
	ofMedian = "median"
	ofP99    = "p99"
	ofMax    = "max"
	// maxSamples keeps the report of a hundred thousand calls readable.
	maxSamples = 1000
)

// newResult summarises all samples and keeps some.
func newResult(key, what, unit string, target *Target, samples []float64) Result {
	kept := samples
	if len(samples) > maxSamples {
		kept = make([]float64, maxSamples)
		for i := range kept {
			kept[i] = samples[i*len(samples)/maxSamples]
		}
	}
	return Result{Key: key, What: what, Unit: unit, Target: target, Summary: Summarise(samples), Samples: kept}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
