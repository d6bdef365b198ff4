package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

// maxRows bounds a table, so that a page about hours of faults can still be read.
const maxRows = 200

// orElse returns the name, or word if the name is empty.
func orElse(word, name string) string { return cmp.Or(name, word) }

// cards returns the numbers that a reader wants to see first.
func cards(r *observe.Recording) []card {
	longest := int64(0)
	for _, t := range r.Takeovers {
		longest = max(longest, t.Gap)
	}
	overlap := card{"0", "overlaps of leaders", "good"}
	if n := len(r.Overlaps); n > 0 {
		overlap = card{fmt.Sprint(n), "overlaps of leaders", "bad"}
	}
	return []card{
		{fmt.Sprint(len(r.Hosts)), "hosts, " + orElse("network unknown", r.Network), ""},
		{fmt.Sprint(len(r.Faults)), "faults", ""},
		{fmt.Sprint(len(r.Takeovers)), "leaderships", ""},
		{seconds(time.Duration(longest)), "longest from the end of a lease to the next leader", ""},
		overlap,
	}
}

// first returns the first maxRows rows of a table.
func first[T any](rows []T) []T { return rows[:min(len(rows), maxRows)] }

// takeoverCharts shows, by cause, how the times that takeovers took are distributed.
func takeoverCharts(r *observe.Recording) []chart {
	byCause := map[string][]float64{}
	for _, t := range r.Takeovers {
		if t.Took > 0 {
			byCause[t.Cause] = append(byCause[t.Cause], float64(t.Took)/1e6)
		}
	}
	causes := slices.SortedFunc(maps.Keys(byCause), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byCause[b]), len(byCause[a])), cmp.Compare(a, b))
	})
	c := chart{name: "takeovers", title: "From a fault to the next leader", x: "ms", y: "share at or below", shares: true}
	var drawn [][]float64
	for _, cause := range causes {
		if samples := byCause[cause]; len(samples) > 1 && len(c.series) < maxSeries {
			c.series, drawn = append(c.series, spread(cause, samples)), append(drawn, samples)
		}
	}
	c.logX = wide(drawn...)
	if len(c.series) == 0 {
		return nil
	}
	return []chart{c}
}

// countTable says how many messages of each kind were sent between two readings of the
// counters.
type countTable struct {
	Kinds []string
	Rows  []countRow
}

type countRow struct {
	From, To string
	Counts   []uint64
	Sum      uint64
}

// countMessages takes the differences of successive readings, and sums them over all hosts
// that were up at both. It returns nil without two readings.
func countMessages(r *observe.Recording) *countTable {
	byStep := map[int]map[string]map[string]uint64{}
	at := map[int]string{}
	for _, m := range r.Messages {
		if byStep[m.Step] == nil {
			byStep[m.Step] = map[string]map[string]uint64{}
		}
		byStep[m.Step][m.Host], at[m.Step] = m.Sent, seconds(m.At.Sub(r.From))
	}
	lines := slices.Sorted(maps.Keys(byStep))
	if len(lines) < 2 {
		return nil
	}
	kinds := map[string]bool{}
	var sums []map[string]uint64
	for i := range lines[1:] {
		sum := map[string]uint64{}
		for host, after := range byStep[lines[i+1]] {
			before, up := byStep[lines[i]][host]
			for kind, n := range after {
				if up && n > before[kind] {
					sum[kind] += n - before[kind]
					kinds[kind] = true
				}
			}
		}
		sums = append(sums, sum)
	}
	t := &countTable{Kinds: slices.Sorted(maps.Keys(kinds))}
	for i, sum := range first(sums) {
		row := countRow{From: at[lines[i]], To: at[lines[i+1]]}
		for _, kind := range t.Kinds {
			row.Counts = append(row.Counts, sum[kind])
			if !strings.HasPrefix(kind, "Heartbeat") {
				row.Sum += sum[kind]
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
