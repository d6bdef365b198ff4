package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

type Row struct {
	Figure
	Before  Figure  // the figure of the earlier run; without samples if there is none
	Change  string  // of the median; ~ if it may be by chance
	P       float64 // probability of such a difference by chance, by the Mann-Whitney U test
	Verdict string  // "better", "worse" or ""
	Missed  bool    // a target is missed; with an earlier run: missed now, and met then
}

// Rows returns the figures of a report, beside those of an earlier one if it is not nil.
func (r Report) Rows(before *Report) []Row {
	var old []Figure
	if before != nil {
		old = before.Figures()
	}
	var rows []Row
	for _, f := range r.Figures() {
		row := Row{Figure: f, P: 1, Missed: len(f.Unmet()) > 0}
		i := slices.IndexFunc(old, func(o Figure) bool { return o.Name == f.Name && o.Unit == f.Unit && o.On == f.On })
		if i >= 0 {
			row.compare(old[i])
			old = slices.Delete(old, i, i+1)
		}
		rows = append(rows, row)
	}
	for _, o := range old { // measured in the earlier report only
		gone := o
		gone.Samples = nil
		rows = append(rows, Row{Figure: gone, Before: o, P: 1})
	}
	return rows
}

func (row *Row) compare(before Figure) {
	row.Before = before
	row.Missed = row.Missed && len(before.Unmet()) == 0
	found := benchmath.AssumeNothing.Compare(sample(before.Samples), sample(row.Samples))
	was, is := before.Value(ofMedian), row.Value(ofMedian)
	row.P, row.Change = found.P, found.FormatDelta(was, is)
	switch {
	case found.P > found.Alpha || was == is:
	case (is > was) == (row.Unit == answersPerSecond):
		row.Verdict = "better"
	default:
		row.Verdict = "worse"
	}
}

func (f Figure) Target() string {
	var all []string
	for _, t := range f.Targets {
		all = append(all, Digits(t.AtMost)+" "+t.Of)
	}
	return strings.Join(all, ", ")
}

func (row Row) Mark() string {
	switch {
	case row.Missed:
		return "MISSED"
	case len(row.Targets) > 0 && len(row.Samples) > 0 && len(row.Before.Samples) == 0:
		return "ok"
	}
	return row.Verdict
}

// Cells writes statistics of the figure. Without samples each is "-".
func (f Figure) Cells(statistics ...string) []string {
	var cells []string
	for _, of := range statistics {
		cell := Digits(f.Value(of))
		if of == "n" {
			cell = strconv.Itoa(len(f.Samples))
		} else if len(f.Samples) == 0 {
			cell = "-"
		}
		cells = append(cells, cell)
	}
	return cells
}

// Table writes the report for people, beside an earlier one if it is not nil.
func (r Report) Table(before *Report) string {
	var text strings.Builder
	line := func(w *tabwriter.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }
	for _, f := range append(slices.Clone(r.Facts), r.Config()...) {
		fmt.Fprintln(&text, f)
	}
	for _, d := range r.Differences(before) {
		fmt.Fprintf(&text, "Careful, before it was %s\n", d)
	}
	fmt.Fprintln(&text)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if before == nil {
		line(w, "WHAT", "ON", "UNIT", "N", "MEDIAN", "P99", "MIN", "MAX", "AT MOST", "")
	} else {
		line(w, "WHAT", "ON", "UNIT", "N", "BEFORE", "P99", "N", "AFTER", "P99", "CHANGE", "P", "")
	}
	for _, row := range r.Rows(before) {
		cells := []string{row.What, row.On.String(), row.Unit}
		if before == nil {
			cells = append(append(cells, row.Cells("n", ofMedian, ofP99, "min", ofMax)...), row.Target())
		} else {
			cells = slices.Concat(cells, row.Before.Cells("n", ofMedian, ofP99), row.Cells("n", ofMedian, ofP99), []string{row.Change, fmt.Sprintf("%.3f", row.P)})
		}
		line(w, append(cells, row.Mark())...)
	}
	w.Flush()
	return text.String()
}

// Differences returns the properties of the earlier report's machine that differ now: they make
// the reports hard to compare.
func (r Report) Differences(before *Report) []string {
	if before == nil {
		return nil
	}
	return slices.DeleteFunc(before.Config(), func(c string) bool { return slices.Contains(r.Config(), c) })
}

// MissedSince returns the figures that met their targets before and do not now, one line each.
func (r Report) MissedSince(before Report) []string {
	var all []string
	for _, row := range r.Rows(&before) {
		if row.Missed {
			all = append(all, fmt.Sprintf("%s (%s): its target was met before", row.What, row.On))
		}
	}
	return all
}

// Digits writes a number with three significant digits, or rounded to an integer from 100 on.
func Digits(x float64) string {
	if x >= 100 || x <= -100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
