package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSimulateRefusesAWrongCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"simulate --cores 0":                     "--cores",
		"simulate --drift 99":                    "--drift: 99",
		"simulate --for -1s":                     "--for",
		"simulate --occurrences 5":               "--occurrences",
		"simulate --jobs --occurrences 0":        "--occurrences",
		`simulate --shrunk {"gap_ns":1}`:         "--shrunk: there is no --seed",
		"simulate --seed 1 --shrunk faults":      `--shrunk: read "faults"`,
		`simulate --seed 1 --shrunk {"color":1}`: "unknown field",
	} {
		code, stdout, stderr := testbed(t, strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint: ") || stdout != "" {
			t.Errorf("%q: exit %d, want %d and %q:\n%s%s", line, code, exitUsage, want, stdout, stderr)
		}
	}
}

func TestSimulateEndsWithASummary(t *testing.T) {
	code, stdout, stderr := testbed(t, "simulate", "--seeds", "4", "--cores", "1")
	if code != 0 || !strings.Contains(stdout, "4 seeds, 1 to 4") || !strings.Contains(stdout, "no promise was broken") || stderr == "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestSimulateJobsCountsAndTellsAStory(t *testing.T) {
	code, stdout, stderr := testbed(t, "simulate", "--jobs", "--occurrences", "500")
	if code != 0 || !regexp.MustCompile(`Occurrences [5-9][0-9]{2}`).MatchString(stdout) || !strings.Contains(stdout, "0 passed over in silence") || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = testbed(t, "simulate", "--jobs", "--seed", "2")
	if code != 0 || !strings.Contains(stdout, "leads in term 1") || !strings.Contains(stdout, "Worlds 1") || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

// TestThePrintedCommandReplaysWhatWasFound lets clocks drift beyond the bound, and then runs the
// very command that was printed.
func TestThePrintedCommandReplaysWhatWasFound(t *testing.T) {
	code, stdout, stderr := testbed(t, "simulate", "--drift", "30", "--rule", "G1", "--seeds", "300", "--tries", "120",
		"--html", filepath.Join(t.TempDir(), "a.html"))
	if code != exitFailed || !strings.Contains(stderr, "a promise was not kept") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	match := regexp.MustCompile(`replay: go run ./cmd/testbed (simulate .*) --shrunk '(.*)'`).FindStringSubmatch(stdout)
	if match == nil {
		t.Fatalf("no replay command in\n%s", stdout)
	}
	args := append(strings.Fields(strings.ReplaceAll(match[1], `"`, "")), "--shrunk", match[2])
	code, again, _ := testbed(t, args...)
	found := regexp.MustCompile(`G1: .*`).FindAllString(stdout, -1)
	if code != exitFailed || len(found) == 0 || !strings.Contains(again, found[len(found)-1]) {
		t.Errorf("exit %d of %q, want %q in\n%s", code, args, found, again)
	}
}
