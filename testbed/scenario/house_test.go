package scenario_test

import (
	"os"
	"strings"
	"testing"
)

// known are the kinds of failed elections that must each have a script.
var known = []string{
	"leader-killed", "leader-frozen-and-thawed", "leader-cut-off-silently", "leader-cut-off-loudly",
	"leader-can-send-not-receive", "leader-can-receive-not-send", "two-two-split", "flapping-link", "rolling-restart",
	"rejoiner-does-not-depose", "higher-priority-preempts-once", "stuck-disk-leader-loses-leadership",
	"majority-lost-and-regained", "all-power-cycled-at-once", "name-conflict", "wrong-key", "voter-with-a-lost-disk",
	"slow-network", "fifty-hosts", "long-partition", "clocks-at-the-edge", "leader-on-a-starved-host", "herd-of-fifty",
	"resign", "transfer", "drain", "no-quorum-split-and-merge", "program-killed", "program-frozen",
	"agent-killed-under-a-program", "agent-frozen-under-a-program", "run-killed", "host-cut-off-with-a-program",
	"drain-with-a-program", "ring-leader-killed", "bully-best-successors-dead",
	"job-killed", "job-cut-off", "job-clock-ahead", "job-drained", "job-power-cycled", "word-voter-replaced", "word-disk-torn",
}

func TestEveryKnownWayElectionsGoWrongHasAScript(t *testing.T) {
	there := map[string]bool{}
	for _, file := range scripts(t) {
		there[nameOf(file)] = true
	}
	for _, name := range known {
		if !there[name] {
			t.Errorf("there is no script %s", name)
		}
	}
}

func TestEveryScriptSaysWhatItShowsAndAllowsNoOverlap(t *testing.T) {
	for _, file := range scripts(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s: its first line does not say what it shows", nameOf(file))
		}
		if !strings.Contains(string(text), "\nexpect overlap 0\n") && !strings.Contains(string(text), "\nquorum off\n") {
			t.Errorf("%s: it has a quorum, and allows two leaders at once", nameOf(file))
		}
	}
}
