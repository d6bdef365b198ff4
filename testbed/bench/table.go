package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/hosts"
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

// Units of the report that are used more than once.
const (
	perTakeover      = "ms/takeover"
	overlapped       = "ms-overlap"
	answersPerSecond = "answers/s"
	perAnswer        = "µs/answer"
	perRead          = "ms/answer"
	perRefusal       = "ms/refusal"
	perSettling      = "ms/settling"
	leadsLost        = "leads-lost"
	perElection      = "messages/election"
	perLife          = "ms/life"
	noLeader         = "ms-none"
	perPause         = "ms-paused"
	rss              = "MiB-RSS"
	pss              = "MiB-PSS"
	cpu              = "%CPU"
)

const (
	// slack is how many milliseconds a takeover may take beyond the lease, which must pass for
	// safety. manySlack is the same for many elections to be led again.
	slack     = 30
	manySlack = 200
	// hostsUp is how long fifty hosts may take to start and agree.
	hostsUp = 20 * time.Second
	// Up to atOnceFew agents that start at once must agree within atOnceSoon milliseconds, more
	// agents within atOnceLater.
	atOnceFew   = 60
	atOnceSoon  = 15_000
	atOnceLater = 60_000
	// leastRate is how many answers per second an agent must give to many callers.
	leastRate = 25_000
	// drift is how far an agent assumes that a clock may stray.
	drift = 0.01
)

// measure describes a figure, and has its targets.
type measure struct {
	name, unit string
	what       string
	targets    []Target
}

func (p Point) lease() time.Duration {
	return hosts.Config{Agents: p.Agents, Algorithm: p.Algorithm, Profile: p.Profile, Quorum: true}.Lease()
}

// few returns the targets if there are only a few agents, for which they were set. With more
// agents the figures are for information only.
func few(p Point, targets []Target) []Target {
	if p.Agents > fewAgents {
		return nil
	}
	return targets
}

// takeovers are the measures of starts and faults.
func takeovers(p Point) []measure {
	wait := p.lease()
	lease, held := millis(wait), millis(quorum.Outlast(wait, drift))
	const again = " within a lease of another's kill -9 and restart → new leader"
	return []measure{
		{"ColdStart", "ms/start", "cold start: last process started → all agree", few(p, []Target{{ofMedian, 500}})},
		{"ColdStart", "ms-all/start", "cold start: first process started → all agree", []Target{{ofMax, millis(hostsUp)}}},
		{"Takeover/fault=kill", perTakeover, "kill -9 of the leader → new leader", few(p, []Target{{ofP99, lease + slack}})},
		{"Takeover/fault=cut", perTakeover, "leader cut off silently → new leader", few(p, []Target{{ofP99, lease + slack}})},
		{"Takeover/fault=resign", perTakeover, "resign → new leader", few(p, []Target{{ofMedian, 15}})},
		{"Takeover/fault=transfer", perTakeover, "transfer → new leader", few(p, []Target{{ofMedian, 15}})},
		{"Takeover/fault=sigterm", perTakeover, "SIGTERM → new leader", few(p, []Target{{ofMedian, 15}})},
		{"Takeover/fault=kill/again", perTakeover, "kill -9" + again, few(p, []Target{{ofP99, held + slack}})},
		{"Takeover/fault=resign/again", perTakeover, "resign" + again, few(p, []Target{{ofMedian, 15}, {ofP99, 70}})},
		{"Takeover/fault=transfer/again", perTakeover, "transfer" + again, few(p, []Target{{ofMedian, 15}, {ofP99, 70}})},
		{"Takeover/fault=sigterm/again", perTakeover, "SIGTERM" + again, few(p, []Target{{ofMedian, 15}, {ofP99, 70}})},
		{"Takeover", overlapped, "two leaders at once in these rounds", []Target{{ofMax, 0}}},
		{"Overlap", overlapped, "two leaders at once", []Target{{ofMax, 0}}},
		{"Election/fault=kill", perElection, "messages of an election, after kill -9 of the leader", nil},
		{"Election/fault=resign", perElection, "messages of an election, after a resignation", nil},
		{"Program/by=campaign/fault=kill", perTakeover, "program with a campaign, kill -9 → next program elected", []Target{{ofMedian, 15}, {ofP99, 40}}},
		{"Program/by=run/fault=kill-command", perTakeover, "CMD of `doyen run --restart never`, kill -9 → next CMD started", []Target{{ofMedian, 15}, {ofP99, 40}}},
		{"Program/by=run/fault=kill", perTakeover, "`doyen run`, kill -9 → next CMD started", []Target{{ofMedian, 15}, {ofP99, 40}}},
		{"Program/by=campaign/fault=resign", perTakeover, "resign → next program elected", []Target{{ofMedian, 10}}},
		{"Program/by=campaign/fault=transfer", perTakeover, "transfer → next program elected", []Target{{ofMedian, 10}}},
		{"Program", overlapped, "two programs at once in these rounds, by their own stamps", []Target{{ofMax, 0}}},
	}
}

// afterlives are the measures of agents whose keepers start them again.
func afterlives(p Point) []measure {
	all := []measure{
		{"Restart", perLife, "`doyen restart` of an agent: until the command returns", nil},
		{"Keeper", pss, "keeper: PSS", []Target{{ofMax, 4}}},
		{"Keeper", "checks/min", "keeper: wake-ups, each for a check of the tick", nil},
	}
	ends := []struct {
		name, what string
		none       string // the statistic of the time without a leader that has to be 0
		took       []Target
	}{
		{"Life/end=kill", "kill -9 of the leader", ofP99, []Target{{ofMedian, 150}, {ofP99, 300}}},
		{"Life/end=panic", "panic (SIGABRT) of the leader", ofP99, nil},
		{"Life/end=hang", "SIGSTOP of the leader", ofP95, nil},
		{"Restart", fmt.Sprintf("`doyen restart` of all %d agents", rolling), ofMax, nil},
	}
	for _, e := range ends {
		if p.Profile == "local" {
			e.none = ofP90
		}
		none := []Target{{e.none, 0}}
		all = append(all,
			measure{e.name, leadsLost, e.what + ": changes of leader", none},
			measure{e.name, noLeader, e.what + ": time without a leader", none},
			measure{e.name, perPause, e.what + ": longest time in which no program acted, by its own stamps", none},
			measure{e.name, overlapped, e.what + ": two programs at once, by their own stamps", []Target{{ofMax, 0}}})
		if e.name != "Restart" {
			all = append(all, measure{e.name, perLife, e.what + " → its next process answers and has renewed", e.took})
		}
	}
	return all
}

// costs are the measures of resources and of the speed of answers.
func costs(p Point) []measure {
	return []measure{
		{"Idle", rss, "RSS when idle", few(p, []Target{{ofMax, 20}})},
		{"Idle", pss, "PSS when idle", nil},
		{"Idle", cpu, "CPU of a core when idle", few(p, []Target{{ofMax, 0.8}})},
		{"Idle", "packets/s", "packets in and out when idle", nil},
		{"Idle", "bytes/s", "bytes in and out when idle", nil},
		{"Idle", "messages/s", "messages in and out when idle", nil},
		{"Idle", "message-bytes/s", "bytes of messages when idle, before encryption", nil},
		{"Query/by=socket", perAnswer, "GET /v1/elections/default, keep-alive", []Target{{ofMedian, 100}}},
		{"Query/by=client", perAnswer, "the same by the Go client, decoded", nil},
		{"Query/by=socket/callers=16", answersPerSecond, "the same, 16 callers", nil},
		{"Query/by=socket/callers=16", "µs-apart", "the same, 16 callers: an answer every", []Target{{ofMedian, 1e6 / leastRate}}},
		{"Query/by=socket/callers=16", perAnswer, "the same, 16 callers: each answer", []Target{{ofP99, 3000}}},
		{"Watch", "ms/change", fmt.Sprintf("a change → read by all of %d watchers of one agent", watcherCount), []Target{{ofMax, 50}}},
		{"Watch", "KiB/watcher", "memory of the agent for each watcher: PSS", nil},
		{"Binary", "MB", "stripped binary", []Target{{ofMax, 20}}},
	}
}

// crowds are the measures with many elections, readers or agents.
func crowds(p Point) []measure {
	lease := millis(p.lease())
	agreed := float64(atOnceSoon)
	if p.Agents > atOnceFew {
		agreed = atOnceLater
	}
	many := fmt.Sprintf("%d elections held by %d agents, an agent: ", manyElections, manyHolders)
	load := fmt.Sprintf("%d elections × %d candidates ", loadElections, p.Agents)
	started := fmt.Sprintf("%d agents started at once: ", p.Agents)
	read := fmt.Sprintf("%d connections with consistency=quorum, %d elections: ", readerCount, loadElections)
	return []measure{
		{"ManyElections", cpu, many + "CPU of a core", []Target{{ofMax, 3}}},
		{"ManyElections", rss, many + "RSS", []Target{{ofMax, 60}}},
		{"ManyElections", perTakeover, fmt.Sprintf("kill -9 of an agent that leads %d elections → each led again", manyElections/manyHolders), []Target{{ofMax, lease + manySlack}}},
		{"Load/loops=0", perSettling, load + "from a cold start → all led", []Target{{ofMax, 8000}}},
		{"Load/loops=0", leadsLost, fmt.Sprintf("leads lost in the %s after that", loadWatch), []Target{{ofMax, 0}}},
		{"Load/loops=some", perSettling, "the same beside busy loops → all led", []Target{{ofMax, millis(loadBusy)}}},
		{"Load/loops=some", leadsLost, "leads lost beside busy loops", nil},
		{"Load/loops=ended", perSettling, "end of the loops → all led", []Target{{ofMax, 5000}}},
		{"Load/loops=ended", leadsLost, "leads lost in the 10 s after that", []Target{{ofMax, 0}}},
		{"Readers", leadsLost, read + "leads lost", []Target{{ofMax, 0}}},
		{"Readers", perRead, read + "a read answered", []Target{{ofMax, 500}}},
		{"Readers", perRefusal, read + "a read refused", []Target{{ofMax, 500}}},
		{"Readers", answersPerSecond, read + "answers", nil},
		{"StartAtOnce", "ms-started/start", started + "first process started → last process started", nil},
		{"StartAtOnce", "ms-agreed/start", started + "first process started → all agree", []Target{{ofMax, agreed}}},
		{"StartAtOnce", "ms-connected/start", started + "first process started → each connected to each", nil},
		{"StartAtOnce", "failed-dials/agent", started + "dials that failed, an agent", nil},
		{"StartAtOnce", "misled-agents", started + "agents that log a refusal though nothing is misconfigured", []Target{{ofMax, 0}}},
	}
}

// measureOf returns the measure of a figure: the one whose name is the longest prefix of the
// figure's name. It adds the rest of that name to the measure's description.
func measureOf(name, unit string, p Point) measure {
	found := measure{what: name}
	for _, m := range slices.Concat(takeovers(p), afterlives(p), costs(p), crowds(p)) {
		if rest, ok := strings.CutPrefix(name, m.name); ok && m.unit == unit && len(m.name) > len(found.name) {
			found = m
			if _, kind, ok := strings.Cut(rest, "="); ok {
				found.what = kind + ": " + m.what
			}
		}
	}
	return found
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
