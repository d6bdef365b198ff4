package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/testbed/observe"
)

// script writes a script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a-script.txtar")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRunTellsWhichScriptsPassed(t *testing.T) {
	good, bad := script(t, "# nothing to do\nprofile local\n"), script(t, "profile local\nprofile moon\n")
	code, stdout, stderr := testbed(t, "run", "--loopback", "--binary", os.Args[0], good)
	if code != 0 || !strings.Contains(stdout, "pass ") || !strings.Contains(stderr, "seed ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = testbed(t, "run", "--loopback", "--rounds", "2", "--binary", os.Args[0], bad, good)
	if code != exitFailed || !strings.Contains(stdout, "a-script.txtar:2: profile: ") || strings.Count(stdout, "FAIL ") != 2 ||
		strings.Count(stdout, "pass ") != 2 || !strings.Contains(stderr, "2 of 4 did not pass") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestRunNamesAFileThatIsNotThere(t *testing.T) {
	for _, args := range [][]string{{"--binary", os.Args[0], "/none/a.txtar"}, {"--binary", "/none/doyen", script(t, "")}} {
		code, _, stderr := testbed(t, append([]string{"run", "--loopback"}, args...)...)
		if code != exitFailed || !strings.Contains(stderr, "/none/") {
			t.Errorf("%q: exit %d\n%s", args, code, stderr)
		}
	}
}

// TestARunIsRecordedAndDrawn needs agents that start: they are told to end with
// a usage error, which the recording then shows as down.
func TestARunIsRecordedAndDrawn(t *testing.T) {
	dir := t.TempDir()
	record, page := filepath.Join(dir, "run.json"), filepath.Join(dir, "run.html")
	file := script(t, "hosts 2\nstart all\nexpect exit on all within 20s\n")
	code, stdout, stderr := testbed(t, "run", "--loopback", "--binary", "/bin/false", "--record", record, "--report", page, file)
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	r, err := observe.ReadRecording(record)
	if err != nil || len(r.Hosts) != 2 || len(r.Steps) != 3 || r.Steps[1].Text != "start all" || r.Steps[1].Line != 2 || r.Failed != "" {
		t.Errorf("%v: %+v", err, r)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "a-script") {
		t.Errorf("%v: the page does not name the script", err)
	}
}
