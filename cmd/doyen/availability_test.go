package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

// The histories are lists of changes, each with its hours before now. "started 2" means that the agent had not
// run for two hours.
func TestTheReportCountsAsLedOnlyWhatWasSeen(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		history string
		want    string // hours led, vacant and unseen of the day and of the month; longest gap and its start; changes
	}{
		"nothing":                {"", "0 0 24, 0 0 720, 0"},
		"led all the time":       {"900 leader a", "24 0 0, 720 0 0, 0"},
		"the history begins":     {"30 leader a", "24 0 0, 30 0 690, 0"},
		"vacant at its begin":    {"10 leader a +2", "10 2 12, 10 2 708, 2 at 12"},
		"a vacancy":              {"900 leader a; 30 no_leader lease expired; 20 leader b", "20 4 0, 710 10 0, 10 at 30 lease expired:1"},
		"still vacant":           {"900 leader a; 3 no_leader resigned; 2 no_leader again", "21 3 0, 717 3 0, 3 at 3 resigned:1"},
		"a vacancy from before":  {"900 leader a; 800 no_leader old; 700 leader a", "24 0 0, 700 20 0, 20 at 720"},
		"without a pause":        {"900 leader a; 10 leader b; 9 leader b; 8 term b; 7 command", "24 0 0, 720 0 0, 0 elected:1"},
		"an old change":          {"900 leader a; 800 leader b", "24 0 0, 720 0 0, 0"},
		"it was down":            {"900 leader a; 10 started 5; 9 leader a", "18 0 6, 714 0 6, 0"},
		"down, then nobody":      {"900 leader a; 10 started 5; 8 leader b +2", "17 2 5, 713 2 5, 2 at 10"},
		"down, and nobody since": {"900 leader a; 10 started 5", "9 0 15, 705 0 15, 0"},
		"it had died":            {"900 leader a; 10 started 5; 10 restarted a", "19 0 5, 715 0 5, 0"},
		"down during a vacancy":  {"900 leader a; 20 no_leader x; 10 started 5; 10 restarted; 9 leader a", "13 5 6, 709 5 6, 5 at 20 x:1"},
		"it was paused":          {"900 leader a; 10 paused 5", "19 0 5, 715 0 5, 0"},
		"paused, and lost it":    {"900 leader a; 10 paused 5; 10 no_leader lease expired; 9 leader b", "18 1 5, 714 1 5, 1 at 10 lease expired:1"},
		"a clock set back":       {"900 leader a; 5 no_leader x; 8 leader b; 4 command", "24 0 0, 720 0 0, 0 x:1"},
		"a clock ahead":          {"900 leader a; -5 no_leader x", "24 0 0, 720 0 0, 0 x:1"},
	} {
		a := availabilityOf("e", transitions(t, c.history, now), now)
		got := ""
		for _, s := range []share{a.Day, a.Month} {
			got += fmt.Sprintf("%v %v %v, ", hours(s.LedMS), hours(s.VacantMS), hours(s.UnseenMS))
			if seen := s.LedMS + s.VacantMS; (s.LedPercent != nil) != (seen > 0) || seen > 0 && *s.LedPercent != 100*float64(s.LedMS)/float64(seen) {
				t.Errorf("%s: %v%% of %v", name, s.LedPercent, seen)
			}
		}
		got += fmt.Sprint(hours(a.LongestGapMS))
		if a.LongestGapAt != nil {
			got += fmt.Sprintf(" at %v", now.Sub(*a.LongestGapAt).Hours())
		}
		for reason, n := range maps.All(a.Changes) {
			got += fmt.Sprintf(" %s:%d", reason, n)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func hours(ms int64) float64 { return milliseconds(ms).Hours() }

func transitions(t *testing.T, lines string, now time.Time) (all []api.Transition) {
	for line := range strings.SplitSeq(lines, "; ") {
		if line == "" {
			continue
		}
		var ago, n float64
		var kind, rest string
		words := strings.SplitN(line, " ", 3)
		if _, err := fmt.Sscan(words[0], &ago); err != nil {
			t.Fatal(err)
		}
		if kind = words[1]; len(words) == 3 {
			rest = words[2]
		}
		hour := float64(time.Hour)
		change := api.Transition{Time: now.Add(-time.Duration(ago * hour)), Election: "e", Type: kind, Reason: "elected"}
		switch kind {
		case api.ChangeStarted, api.ChangePaused:
			fmt.Sscan(rest, &n)
			change.Election, change.DownMS = "", time.Duration(n*hour).Milliseconds()
		case api.ChangeNoLeader:
			change.Reason = rest
		default:
			if who, vacant, _ := strings.Cut(rest, " +"); who != "" {
				fmt.Sscan(vacant, &n)
				change.Leader, change.VacantMS = &api.Leader{Name: who, ID: who}, time.Duration(n*hour).Milliseconds()
			}
		}
		all = append(all, change)
	}
	return all
}

func TestTheReportSaysWhatWasNotSeen(t *testing.T) {
	now := time.Now()
	a := availabilityOf("e", transitions(t, "30 leader a; 20 no_leader lease expired; 19 leader b; 5 no_leader resigned; 5 leader a", now), now)
	b := availabilityOf("f", transitions(t, "900 leader a; 1 no_leader x; 0.9999 leader a", now), now)
	got := availabilityTable([]availability{a, b})
	for _, want := range []string{
		"e         95.833%  96.666%  96.666%  1h0m          1 lease expired, 1 resigned\n",
		"e: seen since " + now.Add(-30*time.Hour).Local().Format("2006-01-02 15:04") + "; not seen, and not counted: 0s of the day, 5d18h of the week, 28d18h of the month\n",
		"f         99.999%  99.999%  99.999%", // never rounded up to 100%
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "f: seen") {
		t.Errorf("f was seen all the time:\n%s", got)
	}
}
