package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func testbed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), append([]string{"testbed"}, args...), nil, &out, &errs)
	return code, out.String(), errs.String()
}

func TestAWrongCommandLineIsRefusedWithAHint(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "no command given",
		"down":                         `unknown command "down"`,
		"--quiet":                      "-quiet",
		"up --agents":                  "agents",
		"up --agents x":                `"x"`,
		"up --agents 0":                "--agents: 0 agents, 1 to 24",
		"up --agents 99":               "--agents: 99 agents",
		"up --for yesterday":           "yesterday",
		"up --for -1s":                 "--for",
		"up --profile moon":            `--profile: unknown profile "moon"; use local, lan or wan`,
		"up --algorithm raft":          `--algorithm: unknown algorithm "raft"`,
		"up --quorum false":            `up takes no arguments, got "false"`,
		"up --speed 3":                 "-speed",
		"bench --rounds 0":             "--rounds: 0 is not",
		"bench --only speed":           `--only: unknown part "speed"`,
		"bench --agents 2":             "3 are the least",
		"bench --seed -1":              "-1",
		"bench --agents three":         "three",
		"bench --agents 3,2":           "--agents: 2 agents",
		"bench --algorithm all":        `unknown algorithm "all"`,
		"soak --for 0s":                "--for: 0s is not",
		"soak --hosts 2 --loopback":    "--hosts: 2 hosts",
		"run":                          "no script is given",
		"run --rounds 0 a.txtar":       "--rounds: 0 is not between 1 and",
		"run --report r.html a b":      "--report is for one run",
		"run --seed many a.txtar":      "many",
		"mutants --jobs -1":            "--jobs: -1 is below 0",
		"mutants no-such-one":          `no mutant is called "no-such-one"`,
		"bench fast":                   `bench takes no arguments, got "fast"`,
		"up --agents 3 --agents=three": `"three"`,
		"up --fro 10s":                 "unknown flag --fro",
		"up --for ten":                 `"ten" for --for: it can't be read; a time has its unit, as in 10s`,
		"up --for":                     "a value is missing after --for",
	} {
		code, stdout, stderr := testbed(t, strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%q: exit %d, want %d and %q:\n%s", line, code, exitUsage, want, stderr)
		}
		if stdout != "" {
			t.Errorf("%q: wrote to stdout:\n%s", line, stdout)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	for _, line := range []string{"help", "--help", "up --help", "bench --help", "mutants --help"} {
		code, stdout, stderr := testbed(t, strings.Fields(line)...)
		if code != 0 || stdout == "" || stderr != "" {
			t.Errorf("%q: exit %d\n%s%s", line, code, stdout, stderr)
		}
	}
}

func TestBenchSaysWhatItCannotRun(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "doyen")
	for _, part := range []string{"size", "cold"} {
		code, _, stderr := testbed(t, "bench", "--only", part, "--binary", missing)
		if code != exitFailed || !strings.Contains(stderr, missing) {
			t.Errorf("%s: exit %d\n%s", part, code, stderr)
		}
	}
}

func TestAnInterruptedRunEndsWithOne(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	code := run(ctx, []string{"testbed", "up", "--profile", "local", "--for", "1m"}, nil, &out, &errs)
	if code != exitFailed || !strings.Contains(errs.String(), "cancel") {
		t.Errorf("exit %d\n%s", code, &errs)
	}
}
