package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// around returns n samples that rise in small steps from a value.
func around(from float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = from + float64(i)/10
	}
	return all
}

func twoRuns() (before, after Report) {
	before, after = sample(), sample()
	nine := &Point{9, "ring", "lan"}
	before.Results = []Result{
		newResult("kill", "kill -9", "ms", &Target{ofP99, 1230}, around(1100, 30)),
		newResult("resign", "resign", "ms", &Target{ofMedian, 15}, around(3, 30)),
		newResult("query_rate", "rate", "1/s", nil, around(40000, 30)),
		newResult("cold", "cold start", "ms", nil, nil),
		newResult("gone", "gone", "ms", nil, []float64{1}),
	}
	after.Results = []Result{
		newResult("kill", "kill -9", "ms", &Target{ofP99, 1230}, around(1300, 30)),
		newResult("resign", "resign", "ms", &Target{ofMedian, 15}, around(3.02, 30)),
		newResult("query_rate", "rate", "1/s", nil, around(50000, 30)),
		newResult("cold", "cold start", "ms", nil, []float64{1}),
		{Key: "kill", What: "kill -9", Unit: "ms", On: nine},
	}
	return before, after
}

func TestCompareTellsChanceFromChange(t *testing.T) {
	c := Compare(twoRuns())
	verdicts := map[string]Verdict{}
	for _, r := range c.Rows {
		verdicts[r.Key] = r.Verdict
	}
	want := map[string]Verdict{"kill": Worse, "resign": Same, "query_rate": Better, "cold": Same}
	for key, v := range want {
		if verdicts[key] != v {
			t.Errorf("%s is %q, want %q", key, verdicts[key], v)
		}
	}
	if len(c.Rows) != len(want) {
		t.Errorf("%d rows, want %d", len(c.Rows), len(want))
	}
	if !slices.Equal(c.OnlyBefore, []string{"gone, 3 agents, ring, lan"}) || !slices.Equal(c.OnlyAfter, []string{"kill, 9 agents, ring, lan"}) {
		t.Errorf("only before %q, only after %q", c.OnlyBefore, c.OnlyAfter)
	}
	if missed := c.Missed(); len(missed) != 1 || !strings.HasPrefix(missed[0], "kill -9") {
		t.Errorf("missed %q", missed)
	}
	if got := c.Rows[0].Change; got < 0.18 || got > 0.19 {
		t.Errorf("kill changed by %v", got)
	}
	table := c.Table()
	for _, line := range []string{"+18.2 % p=0.000", "MISSES ITS TARGET", "Only after: kill, 9 agents"} {
		if !strings.Contains(table, line) {
			t.Errorf("the table lacks %q:\n%s", line, table)
		}
	}
}

func TestARunComparedWithItselfIsTheSame(t *testing.T) {
	before, _ := twoRuns()
	c := Compare(before, before)
	for _, r := range c.Rows {
		if r.Verdict != Same || r.Change != 0 || r.Missed {
			t.Errorf("%s: %+v", r.Key, r)
		}
	}
	if len(c.OnlyBefore)+len(c.OnlyAfter)+len(c.Warnings) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestAnotherMachineIsWarnedOf(t *testing.T) {
	before, after := twoRuns()
	after.Machine.CPUs, after.Machine.Go = 64, "go2"
	if w := Compare(before, after).Warnings; len(w) != 2 || !strings.Contains(w[0], "64 × unknown processor") {
		t.Errorf("%q", w)
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	before, _ := twoRuns()
	before.Results[0].Kinds = map[string]float64{"VoteRequest": 2}
	encoded, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadReport(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || string(again) != string(encoded) {
		t.Errorf("%v: read\n%s\nwrote\n%s", err, again, encoded)
	}
	for name, text := range map[string]string{"no-json": "x", "other": `{"a":1}`} {
		bad := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(bad); err == nil || !strings.Contains(err.Error(), "testbed bench --json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
