package jobs

import (
	"strings"
	"testing"
	"time"
)

func must(t *testing.T, c Config) *Job {
	t.Helper()
	j, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// cronAt is the word of an hourly job whose occurrences are done up to that many hours after base. run is its
// claim.
func cronAt(done int, run *Run) Word {
	return Word{Version: version, Kind: Cron, Spec: "0 * * * *", Done: stamp(base.Add(time.Duration(done) * time.Hour)), Run: run}
}

// An end may not be written before the lease ends. If the same host leads next, it still knows that end.
func TestAKnownEndOutlivesTheLeadership(t *testing.T) {
	for _, rerun := range []bool{false, true} {
		j := must(t, Config{Name: "pay", Kind: Cron, Spec: "0 * * * *", Rerun: rerun, Late: 3 * time.Hour})
		now := base.Add(time.Hour)
		claim := j.Step(now, Leads{Term: 1, Text: cronAt(0, nil).Text()}).Write
		if out := j.Step(now, Written{Text: claim}); out.Start == nil {
			t.Fatalf("%+v", out)
		}
		if out := j.Step(now, Ended{Result: Finished}); out.Write == "" {
			t.Fatalf("%+v", out)
		}
		j.Step(now, Lost{})
		out := j.Step(now.Add(time.Minute), Leads{Term: 2, Text: claim})
		w, err := Parse(out.Write)
		if err != nil || w.Run != nil || w.Last.Result != Finished || w.Done != stamp(now) || w.Total[Unknown] != 0 {
			t.Errorf("rerun %t: it writes %s", rerun, out.Write)
		}
		// The end of this host's run does not count for another host's claim.
		j.Step(now, Lost{})
		other, _ := Parse(claim)
		other.Run.Term = 9
		out = j.Step(now.Add(time.Minute), Leads{Term: 10, Text: other.Text()})
		if w, _ := Parse(out.Write); w.Last == nil || w.Last.Result != Unknown {
			t.Errorf("rerun %t: of another claim it writes %s", rerun, out.Write)
		}
	}
}

func TestJ3AChangedSpecCountsWhatTheFormerOneMissed(t *testing.T) {
	j := must(t, Config{Name: "pay", Kind: Cron, Spec: "30 * * * *"})
	out := j.Step(base.Add(3*time.Hour+10*time.Minute), Leads{Term: 1, Text: cronAt(0, nil).Text()})
	w, err := Parse(out.Write)
	if err != nil || w.Missed == nil || w.Missed.N != 3 || w.Total[Passed] != 3 || w.Spec != "30 * * * *" {
		t.Errorf("it writes %s", out.Write)
	}
}

// A clock that was at 1970 for a moment leaves half a century to pass over. Each write handles a part.
func TestJ3YearsArePassedOverInSeveralWrites(t *testing.T) {
	j := must(t, Config{Name: "pay", Kind: Cron, Spec: "* * * * *"})
	w := Word{Version: version, Kind: Cron, Spec: "* * * * *", Done: stamp(base.Add(-1000 * time.Hour))}
	out, writes := j.Step(base, Leads{Term: 1, Text: w.Text()}), 0
	for ; out.Write != "" && out.Start == nil; writes++ {
		out = j.Step(base, Written{Text: out.Write})
	}
	if w, _ := Parse(j.text); writes != 6 || out.Start == nil || w.Total[Passed] != 1000*60-1 || out.Start.Occurrence != stamp(base) {
		t.Errorf("after %d writes: %s", writes, j.text)
	}
}

func TestAnEarlierKeyLeavesTheClaimOfALaterOne(t *testing.T) {
	claimed := Word{Version: version, Kind: Series, Run: &Run{At: "2", Term: 3, Try: 1}}
	out := must(t, Config{Name: "s", Kind: Series, Key: "1"}).Step(base, Leads{Term: 4, Text: claimed.Text()})
	if out.Write != "" || out.Exit == nil || *out.Exit != ExitUnknown || len(out.Reports) != 1 || out.Reports[0].From != "2" {
		t.Errorf("%+v", out)
	}
}

// If the word becomes another program's, the job ends, and the receipt has nothing to wait for.
func TestAForeignWordEndsTheJob(t *testing.T) {
	j := must(t, Config{Name: "pay", Kind: Key})
	if out := j.Step(base, Leads{Term: 1}); out.Write == "" {
		t.Fatalf("%+v", out)
	}
	if out := j.Step(base, Leads{Term: 1, Text: "hello"}); out.Exit == nil || *out.Exit != ExitUsage || !j.Idle() {
		t.Errorf("%+v, idle %t", out, j.Idle())
	}
}

func TestOnlyWhatIsAheadIsReset(t *testing.T) {
	for _, test := range []struct {
		name string
		word Word
		term uint64
		want string // part of the error
	}{
		{"done in the past", cronAt(-1, nil), 4, "not in the future"},
		{"running", cronAt(5, &Run{At: stamp(base.Add(6 * time.Hour)), Term: 4, Try: 1}), 4, "wait until it has ended"},
		{"ahead", cronAt(5, nil), 4, ""},
		{"its starter died", cronAt(-1, &Run{At: stamp(base.Add(6 * time.Hour)), Term: 3, Try: 1}), 4, ""},
	} {
		text, err := ResetDone(test.word.Text(), base, test.term)
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		w, _ := Parse(text)
		if err != nil || w.Done != stamp(base) || w.Run != nil || (test.word.Run != nil) != (w.Last != nil && w.Last.Result == Unknown && w.Total[Unknown] == 1) {
			t.Errorf("%s: %s, %v", test.name, text, err)
		}
	}
}
