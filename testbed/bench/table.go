package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table writes the report for people.
func (r Report) Table() string {
	var text strings.Builder
	m := r.Machine
	fmt.Fprintf(&text, "Doyen %s, %s: %d agents, %s, profile %s (lease %d ms), %d rounds, seed %d\n", r.Version,
		r.Time.Format("2006-01-02 15:04 MST"), r.Options.Agents, r.Options.Algorithm, r.Options.Profile, r.Options.LeaseMS,
		r.Options.Rounds, r.Options.Seed)
	fmt.Fprintf(&text, "%s/%s %s, %d × %s, %d MiB, %s, load %.2f before the run\n\n", m.OS, m.Arch, m.Kernel, m.CPUs, orUnknown(m.CPU),
		m.MemoryMiB, m.Go, m.Load1)
	if r.several() {
		fmt.Fprintf(&text, "Measured on: %s. With %d agents or more there are fewer rounds.\n\n", r.points(), manyAgents)
	}
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tUNIT\tN\tMEDIAN\tP99\tMIN\tMAX\tAT MOST\t")
	for _, x := range r.Results {
		s, what := x.Summary, x.What
		if r.several() {
			what += " (" + r.Point(x).String() + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", what, x.Unit, s.N, figure(s.Median), figure(s.P99),
			figure(s.Min), figure(s.Max), x.target(), x.mark())
	}
	w.Flush()
	for _, n := range r.Notes {
		fmt.Fprintf(&text, "\nNot measured: %s.\n", n)
	}
	return text.String()
}

// Missed returns what did not meet its target, a line each.
func (r Report) Missed() []string {
	var missed []string
	for _, x := range r.Results {
		of, what := "", x.What
		if x.Summary.N == 0 {
			of = " of 0 samples"
		}
		if x.On != nil {
			what += " (" + x.On.String() + ")"
		}
		for _, t := range x.unmet() {
			missed = append(missed, fmt.Sprintf("%s: %s is %s %s%s, at most %s %s is wanted", what, t.Of, figure(x.value(t.Of)), x.Unit, of,
				figure(t.AtMost), x.Unit))
		}
	}
	return missed
}

// several reports whether more than one cluster was measured.
func (r Report) several() bool {
	return slices.ContainsFunc(r.Results, func(x Result) bool { return x.On != nil })
}

// points names the clusters that were measured.
func (r Report) points() string {
	var all []string
	for _, x := range r.Results {
		if name := r.Point(x).String(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, "; ")
}

func (r Result) target() string {
	if r.Target == nil {
		return "-"
	}
	text := r.Target.String()
	for _, t := range r.Also {
		text += ", " + t.String()
	}
	return text
}

func (r Result) mark() string {
	switch {
	case r.Target == nil:
		return ""
	case r.Met():
		return "ok"
	}
	return "MISSED"
}

// figure writes a number with three significant digits, or all before the
// point.
func figure(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100 || x <= -100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown processor"
	}
	return s
}
