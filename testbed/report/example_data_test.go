package report

import (
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	ms    = time.Millisecond
	start = election.Instant(5_000_000_000_000)
)

func at(d time.Duration) election.Instant { return start.Add(d) }

// example is a recording with a crash, a silent cut of the next leader, programs, a time without
// quorum, and a short overlap.
func example() *observe.Recording {
	span := func(state, leader string, term uint64, from, to time.Duration) observe.StateSpan {
		return observe.StateSpan{Election: "default", State: state, Leader: leader, Term: term, From: at(from), To: at(to)}
	}
	return &observe.Recording{
		Scenario: "leader-cut-off <silently>", Algorithm: "bully", Profile: "lan", Quorum: true, Network: "namespaces",
		Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		From: start, To: at(9000 * ms),
		Hosts: []observe.HostRecord{
			{Name: "alpha", Voter: true, Spans: []observe.StateSpan{
				span("electing", "", 0, 0, 80*ms), span("leading", "alpha", 1, 80*ms, 2000*ms), span("down", "", 0, 2000*ms, 4000*ms),
				span("idle", "", 0, 4000*ms, 4100*ms), span("following", "beta", 2, 4100*ms, 5900*ms), span("electing", "", 2, 5900*ms, 6200*ms),
				span("leading", "alpha", 3, 6200*ms, 9000*ms)}},
			{Name: "beta", Voter: true, Spans: []observe.StateSpan{
				span("electing", "", 0, 0, 81*ms), span("following", "alpha", 1, 81*ms, 2010*ms), span("electing", "", 1, 2010*ms, 3105*ms),
				span("leading", "beta", 2, 3105*ms, 6250*ms), span("no_quorum", "", 2, 6250*ms, 7500*ms), span("following", "alpha", 3, 7500*ms, 9000*ms)}},
			{Name: "gamma<&>", Spans: []observe.StateSpan{
				span("electing", "", 0, 0, 82*ms), span("following", "alpha", 1, 82*ms, 2010*ms), span("electing", "", 1, 2010*ms, 3106*ms),
				span("following", "beta", 2, 3106*ms, 5900*ms), span("electing", "", 2, 5900*ms, 6201*ms), span("following", "alpha", 3, 6201*ms, 9000*ms)}},
		},
		Programs: []observe.ProgramSpan{{Program: "p1", Host: "beta", Election: "default", Term: 2, From: at(3110 * ms), To: at(6100 * ms)}},
		Faults: []observe.Fault{
			{What: "crash", Where: []string{"alpha"}, From: at(2000 * ms), To: at(4000 * ms)},
			{What: "cut", Where: []string{"beta"}, Peers: []string{"alpha", "gamma<&>"}, Detail: "both ways", From: at(5000 * ms), To: at(7400 * ms)},
			{What: "disk", Where: []string{"gamma<&>"}, Detail: "full", From: at(8000 * ms), To: at(8500 * ms)},
		},
		Steps: []observe.Step{
			{Text: "hosts 3", From: at(0), To: at(5 * ms)},
			{Text: "kill $l1", From: at(2000 * ms), To: at(2001 * ms)},
			{Text: "expect one-leader among rest within 1.5s", From: at(2001 * ms), To: at(3106 * ms), Saw: "beta, after 1.105s"},
		},
		Takeovers: []observe.Takeover{
			{Election: "default", After: "alpha", Term: 1, At: at(80 * ms)},
			{Election: "default", Before: "alpha", After: "beta", Term: 2, At: at(3105 * ms), Gap: int64(1105 * ms), Cause: "crash", Took: int64(1105 * ms)},
			{Election: "default", Before: "beta", After: "alpha", Term: 3, At: at(6200 * ms), Gap: int64(-50 * ms), Cause: "cut", Took: int64(1200 * ms)},
		},
		Overlaps: []observe.OverlapSpan{{Election: "default", By: "agents", First: "beta", Second: "alpha", From: at(6200 * ms), To: at(6250 * ms)}},
		Failed:   "script:9: expect overlap 0: beta and alpha both led for 50 ms\nlogs: <kept>",
	}
}
