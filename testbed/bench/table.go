package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/hosts"
)

func (f Figure) Target() string {
	return strings.Join(each.Of(f.Targets, func(t Target) string { return Digits(t.AtMost) + " " + t.Of }), ", ")
}

// Mark says whether the targets are met; "" if there are none.
func (f Figure) Mark() string {
	switch {
	case len(f.Unmet()) > 0:
		return "MISSED"
	case len(f.Targets) > 0:
		return "ok"
	}
	return ""
}

// Table writes the report for people.
func (r Report) Table() string {
	var text strings.Builder
	for _, f := range append(slices.Clone(r.Facts), r.Config()...) {
		fmt.Fprintln(&text, f)
	}
	fmt.Fprintln(&text)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }
	line("WHAT", "ON", "UNIT", "N", "MEDIAN", "P99", "MIN", "MAX", "AT MOST", "")
	for _, f := range r.Figures() {
		line(f.What, f.On.String(), f.Unit, strconv.Itoa(len(f.Samples)), Digits(f.Value(ofMedian)), Digits(f.Value(ofP99)),
			Digits(f.Value(ofMin)), Digits(f.Value(ofMax)), f.Target(), f.Mark())
	}
	w.Flush()
	return text.String()
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
	perWrite         = "ms/write"
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
	// slack is how many milliseconds a takeover may take beyond a lease, since the former leader's
	// lease has to expire first. manySlack is the slack for a takeover of many elections.
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

// few returns the targets if at most fewAgents agents run, since the targets were set for so few. For
// more agents it returns none: the figures are then for information only.
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
		none       string // which statistic must be 0, for the changes of leader and for the time without a leader
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
	pages := fmt.Sprintf("%d readers of the status page at %d addresses, %d elections: ", pageReaders, pageAddresses, pageElections)
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
		{"ManyElections", noLeader, "the same: no program leads", nil},
		{"Drain", perTakeover, fmt.Sprintf("drain of a host that leads half of %d elections → each led again", loadElections), []Target{{ofMax, 3000}}},
		{"Drain", noLeader, "the same: no program leads", []Target{{ofMax, 100}}},
		{"Readers", leadsLost, read + "leads lost", []Target{{ofMax, 0}}},
		{"Readers", perRead, read + "a read answered", []Target{{ofMax, 500}}},
		{"Readers", perRefusal, read + "a read refused", []Target{{ofMax, 500}}},
		{"Readers", answersPerSecond, read + "answers", nil},
		{"Pages", leadsLost, pages + "leads lost", []Target{{ofMax, 0}}},
		{"Pages", perRead, pages + "/leader", []Target{{ofP99, 50}}},
		{"Unread", rss, fmt.Sprintf("%d answers that nobody reads: RSS of the agent", unreadAnswers), []Target{{ofMax, 64}}},
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
	for _, m := range slices.Concat(takeovers(p), afterlives(p), costs(p), crowds(p), wordCosts(p)) {
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
