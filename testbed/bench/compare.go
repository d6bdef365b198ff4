package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// Verdict says how a figure moved.
type Verdict string

const (
	Same   Verdict = "~" // what moved may well be chance
	Better Verdict = "better"
	Worse  Verdict = "worse"
)

// Row compares one figure of two runs.
type Row struct {
	Key, What, Unit string
	On              Point
	Before, After   Summary
	Change          float64 // of the median, a share of the one before; 0 if that was 0
	P               float64 // the chance of such a difference if nothing had changed, by Mann and Whitney's U test
	Verdict         Verdict
	Missed          bool // its target, which it met before
}

// Comparison is two runs side by side.
type Comparison struct {
	Before, After         Report
	Rows                  []Row
	OnlyBefore, OnlyAfter []string // figures that the other run has not
	Warnings              []string // why the two are hard to compare
}

// ReadReport reads a report that bench wrote as JSON.
func ReadReport(path string) (Report, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return Report{}, fmt.Errorf("read the report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(encoded, &r); err != nil {
		return Report{}, fmt.Errorf("decode the report %s: %w: is it what `testbed bench --json` wrote?", path, err)
	}
	if len(r.Results) == 0 {
		return Report{}, fmt.Errorf("decode the report %s: %w: is it what `testbed bench --json` wrote?", path, errNoResults)
	}
	return r, nil
}

var errNoResults = errors.New("it has no results")

// place identifies a figure.
type place struct {
	key string
	on  Point
}

// Compare puts two reports side by side, in the order of the one after.
func Compare(before, after Report) Comparison {
	c := Comparison{Before: before, After: after, Warnings: differences(before, after)}
	old := map[place]Result{}
	for _, x := range before.Results {
		old[place{x.Key, before.Point(x)}] = x
	}
	for _, x := range after.Results {
		at := place{x.Key, after.Point(x)}
		was, found := old[at]
		if !found {
			c.OnlyAfter = append(c.OnlyAfter, x.Key+", "+at.on.String())
			continue
		}
		delete(old, at)
		c.Rows = append(c.Rows, compare(at, was, x))
	}
	for _, x := range before.Results {
		if at := (place{x.Key, before.Point(x)}); old[at].Key != "" {
			c.OnlyBefore = append(c.OnlyBefore, x.Key+", "+at.on.String())
		}
	}
	return c
}

// differences of the circumstances.
func differences(before, after Report) []string {
	var all []string
	b, a := before.Machine, after.Machine
	if b.CPU != a.CPU || b.CPUs != a.CPUs || b.Kernel != a.Kernel {
		all = append(all, fmt.Sprintf("not the same machine: %d × %s, %s, then %d × %s, %s",
			b.CPUs, orUnknown(b.CPU), b.Kernel, a.CPUs, orUnknown(a.CPU), a.Kernel))
	}
	if b.Go != a.Go {
		all = append(all, fmt.Sprintf("not the same compiler: %s, then %s", b.Go, a.Go))
	}
	return all
}

func compare(at place, before, after Result) Row {
	r := Row{Key: at.key, What: after.What, Unit: after.Unit, On: at.on, Before: before.Summary, After: after.Summary,
		P: 1, Verdict: Same, Missed: before.Met() && !after.Met()}
	if r.Before.Median != 0 {
		r.Change = r.After.Median/r.Before.Median - 1
	}
	if len(before.Samples) == 0 || len(after.Samples) == 0 {
		return r
	}
	thresholds := benchmath.DefaultThresholds
	sample := func(x Result) *benchmath.Sample { return benchmath.NewSample(slices.Clone(x.Samples), &thresholds) } // it sorts them
	found := benchmath.AssumeNothing.Compare(sample(before), sample(after))
	r.P = found.P
	switch {
	case found.P > found.Alpha || r.After.Median == r.Before.Median:
	case (r.After.Median > r.Before.Median) == moreIsBetter(at.key):
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
	return r
}

// moreIsBetter tells of a figure whether it is the better the higher it is.
func moreIsBetter(key string) bool { return strings.HasSuffix(key, "_rate") }

// Missed returns what met its target before and does not now, a line each.
func (c Comparison) Missed() []string {
	var all []string
	for _, r := range c.Rows {
		if r.Missed {
			all = append(all, fmt.Sprintf("%s (%s): its target was met before", r.What, r.On))
		}
	}
	return all
}

// Table writes the comparison for people.
func (c Comparison) Table() string {
	var text strings.Builder
	for _, r := range []Report{c.Before, c.After} {
		fmt.Fprintf(&text, "Doyen %s, %s, %d × %s, load %.2f before the run\n", r.Version, r.Time.Format("2006-01-02 15:04 MST"),
			r.Machine.CPUs, orUnknown(r.Machine.CPU), r.Machine.Load1)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&text, "Careful: %s.\n", w)
	}
	fmt.Fprintln(&text)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tON\tUNIT\tBEFORE\tP99\tN\tAFTER\tP99\tN\tCHANGE\t\t")
	for _, r := range c.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t\n", r.What, r.On, r.Unit, figure(r.Before.Median), figure(r.Before.P99),
			r.Before.N, figure(r.After.Median), figure(r.After.P99), r.After.N, r.change(), r.mark())
	}
	w.Flush()
	for _, x := range c.OnlyBefore {
		fmt.Fprintf(&text, "Only before: %s\n", x)
	}
	for _, x := range c.OnlyAfter {
		fmt.Fprintf(&text, "Only after: %s\n", x)
	}
	fmt.Fprintln(&text, "\nMedians; ~: the difference may be chance (Mann-Whitney U test, 5 %).")
	return text.String()
}

func (r Row) change() string {
	if r.Verdict == Same {
		return "~"
	}
	if r.Before.Median == 0 {
		return fmt.Sprintf("p=%.3f", r.P)
	}
	return fmt.Sprintf("%+.1f %% p=%.3f", 100*r.Change, r.P)
}

func (r Row) mark() string {
	switch {
	case r.Missed:
		return "MISSES ITS TARGET"
	case r.Verdict != Same:
		return string(r.Verdict)
	}
	return ""
}
