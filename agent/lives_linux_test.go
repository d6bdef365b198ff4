package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
)

// An orderly stop hands over, and ends the lineage: the next start is another holder.
func TestAHandOverEndsTheLineage(t *testing.T) {
	dir := inMemory(t)
	c := lone(t)
	c.RecordDir = dir
	seen := map[string]bool{}
	for range 2 {
		client, _, stop := start(t, c)
		follow(t, client, func(change api.Change) bool { return change.IsLeader })
		var a api.Agent
		if _, body := get(t, client, "/v1/agent"); json.Unmarshal([]byte(body), &a) != nil || a.Lineage == "" || a.Lineage != a.BootID || seen[a.Lineage] || strings.Contains(body, "no_record") {
			t.Errorf("agent %s", body)
		}
		seen[a.Lineage] = true
		if info, err := os.Stat(filepath.Join(dir, c.Name+".record")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("record %v, %v", info, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestAnAgentWithoutARecordRunsAndSaysSo(t *testing.T) {
	c := lone(t)
	c.RecordDir = filepath.Join(t.TempDir(), "missing", "too")
	client, _, stop := start(t, c)
	follow(t, client, func(change api.Change) bool { return change.IsLeader })
	if _, body := get(t, client, "/v1/agent"); !strings.Contains(body, `"code":"no_record"`) || !strings.Contains(body, "--record-dir") {
		t.Errorf("no warning: %s", body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The history outlives the agent, however the agent ends.
func TestTheHistoryIsThatOfAllRuns(t *testing.T) {
	c := lone(t)
	for run := 1; run <= 3; run++ {
		client, out, stop := start(t, c)
		follow(t, client, leads)
		_, body := get(t, client, "/v1/history?election=default")
		if n := strings.Count(body, `"reason":"elected"`); n != (run-1)%2+1 {
			t.Errorf("run %d: %s", run, body)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if damaged := strings.Contains(out.String(), "history.damaged"); damaged != (run == 3) {
			t.Errorf("run %d: %s", run, out)
		}
		if run == 2 {
			if err := os.WriteFile(filepath.Join(c.DataDir, "history"), []byte("damaged\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A history that can't be kept, as on a full disk, is reported and costs no lead.
func TestAHistoryThatCanNotBeKeptCostsNoLead(t *testing.T) {
	c := lone(t)
	for _, name := range []string{"history", "history.damaged"} { // directories that are not empty can't be replaced
		if err := os.MkdirAll(filepath.Join(c.DataDir, name, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	client, out, stop := start(t, c)
	follow(t, client, leads)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if said := out.String(); !strings.Contains(said, "can't be read") || !strings.Contains(said, "can't be written") ||
		!strings.Contains(said, "handed over") {
		t.Errorf("it said: %s", said)
	}
}
