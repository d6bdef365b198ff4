package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/scenario"
)

// playText plays a test's own script, on the loopback interface, so that it needs no rights.
func playText(t *testing.T, ctx context.Context, binary hosts.Binary, text string) scenario.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.txtar")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Run(ctx, scenario.Options{Binary: binary, Loopback: true, Logs: t.TempDir()}, file)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return r
}

func TestAWrongLineIsRefusedWithWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"hosts many":                   `"many": want a number from 1 to 64`,
		"hosts 65":                     `"65": want a number`,
		"profile moon":                 "use local, lan or wan",
		"algorithm raft":               "bully or ring",
		"quorum maybe":                 "want on or off",
		"set omega priority=1":         `there is no host "omega"; there are alpha beta gamma`,
		"set alpha":                    "want KEY=VALUE after the hosts",
		"set alpha color=red":          "the keys are those of the agent's configuration file",
		"set alpha priority=high":      "priority=high",
		"start omega":                  `there is no host "omega"`,
		"start $nobody":                "is a variable not set?",
		"leader l1":                    "no host was started",
		"expect agree":                 "no host was started",
		"hold 1s agree":                "no host was started",
		"strat all":                    `unknown command "strat"`,
		"! hosts 3":                    "! is for doyen",
		"link all delay=soon":          `delay=soon`,
		"link all loss=120%":           `want a share such as 5%`,
		"link all colour=1":            "the keys are delay",
		"flap alpha every now":         "every now: want a time",
		"cut alpha -> alpha":           "a host is on both sides",
		"cut":                          "no host is named",
		"cut alpha":                    "not available here",
		"slow-disk alpha often":        `"often": want a time such as 500ms, stuck or off`,
		"clock alpha fast":             `"fast": want a rate`,
		"wall-clock alpha late":        `"late": want a time such as 60s`,
		"tear-words alpha top":         "want hosts, and then end or middle",
		"once o1 alpha":                "want a name, a host, a key",
		"cron c1 alpha tick":           "want a name, a host, a key",
		"program p1 alpha":             "want a name, a host and an election",
		"program alpha alpha payments": `the name "alpha" is taken`,
	} {
		r := playText(t, t.Context(), hosts.Binary{Path: "/nowhere/doyen"}, line+"\n")
		if r.Passed || !strings.Contains(r.Log, want) || !strings.Contains(r.Log, "script.txtar:1:") {
			t.Errorf("%q: want %q and the line, got\n%s", line, want, r.Log)
		}
	}
}

// TestAFailureSaysWhatWasSeenAndWhereTheLogsAre runs real agents once, and lets each kind of
// expectation fail.
func TestAFailureSaysWhatWasSeenAndWhereTheLogsAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts real processes")
	}
	binary := build(t)
	// A lease of the local profile could expire while a busy machine does other work.
	const up = "profile lan\nhosts 2\nstart all\nleader l1\nfollower f1\n"
	for line, want := range map[string][]string{
		"expect no-leader on alpha within 10ms": {"not within 10ms; instead: alpha ", "what was seen, in ms before now", ": leads in term ", "logs: "},
		"expect leader $f1":                     {"instead: ", "; "},
		"expect leads nobody":                   {`there is no host "nobody"`},
		"expect happiness":                      {`no condition "happiness"`},
		"expect overlap 5ms":                    {"want 5ms; instead: never two at once"},
		"expect takeovers many":                 {`"many": want a number or a time`},
		"hold 1s not-leading on $l1":            {"it ended after 0s: "},
		"doyen $f1 transfer --to nobody":        {"it ended with exit 1"},
		"! doyen $l1 leader":                    {"it ended with exit 0"},
		"crash $f1\nthaw $f1":                   {"it is down"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := playText(t, t.Context(), binary, up+line+"\n")
			for _, w := range want {
				if r.Passed || !strings.Contains(r.Log, w) {
					t.Errorf("want %q in\n%s", w, r.Log)
				}
			}
			if r.Recording == nil || r.Recording.Failed == "" || len(r.Recording.Hosts) != 2 {
				t.Error("the recording does not tell of the failure")
			}
		})
	}
}

func TestAnInterruptedScriptEndsAndFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts real processes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := playText(t, ctx, build(t), "hosts 2\nstart all\nhold 1h agree\n")
	if r.Passed {
		t.Errorf("it passed:\n%s", r.Log)
	}
}
