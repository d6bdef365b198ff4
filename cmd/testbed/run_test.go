package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// TestARunIsDrawn needs agents that start. The script expects them to exit, which they do not.
func TestARunIsDrawn(t *testing.T) {
	page := filepath.Join(t.TempDir(), "run.html")
	file := script(t, "hosts 2\nstart all\nexpect exit on all within 20s\n")
	code, stdout, stderr := testbed(t, "run", "--loopback", "--binary", "/bin/false", "--report", page, file)
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(page)
	for _, want := range []string{"a-script", "2</b><span>hosts", "<code>start all</code>", "passed"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: the page has no %q", err, want)
		}
	}
}
