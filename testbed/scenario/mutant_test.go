package scenario_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/mutants"
	"github.com/doyen-election/doyen/testbed/scenario"
)

// root is the root of the source tree.
const root = "../.."

// buildMutant builds the product with a change of testbed/mutants, without touching the source
// tree.
func buildMutant(t *testing.T, name string) hosts.Binary {
	t.Helper()
	all, err := mutants.Read(os.DirFS(filepath.Join(root, filepath.FromSlash(mutants.Folder))))
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for _, m := range all {
		if m.Name != name {
			continue
		}
		files, err := m.Apply(os.DirFS(root))
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			original, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
			if err := os.WriteFile(changed, text, 0o600); err != nil {
				t.Fatal(err)
			}
			replace[original] = changed
		}
	}
	if len(replace) == 0 {
		t.Fatalf("no mutant %s", name)
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "doyen")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, root+"/cmd/doyen")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the mutant: %v\n%s", err, out)
	}
	return hosts.Binary{Path: binary}
}

// TestALeaderWhoseLeaseNeverEndsIsFoundOut starts an agent that ignores the end of its lease. The
// testbed must see two leaders at once.
func TestALeaderWhoseLeaseNeverEndsIsFoundOut(t *testing.T) {
	if *chosen != "all" {
		t.Skip("it builds the product once more; -scenarios=all plays it")
	}
	if _, err := hosts.BestNet(); err != nil {
		t.Skipf("links can't be cut here: %v", err)
	}
	o := scenario.Options{Binary: buildMutant(t, "h5-no-withdrawal"), Seed: 1, Logs: t.TempDir()}
	r, err := scenario.Run(t.Context(), o, filepath.Join(folder, "leader-cut-off-silently.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed || !strings.Contains(r.Log, "TWO LEADERS AT ONCE") {
		t.Errorf("passed %t, want an overlap that was found:\n%s", r.Passed, r.Log)
	}
	if r.Recording == nil || len(r.Recording.Overlaps) == 0 {
		t.Fatal("the recording has no overlap")
	}
	if o := r.Recording.Overlaps[0]; o.By != "agents" || o.First == o.Second || o.To <= o.From {
		t.Errorf("the recording's overlap: %+v", o)
	}
}
