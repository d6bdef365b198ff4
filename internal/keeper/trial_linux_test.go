package keeper

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Before a restart, the keeper checks whether the next life could start. The agent starts no process for that.
func TestAKeeperTriesTheProgramFileForItsLife(t *testing.T) {
	for how, want := range map[string]string{
		"try":    `<nil>, 57 bytes: "warning\n [try --check-config --output json] page  notify "`,
		"refuse": `it ended with exit code 78, 1048576 bytes: "warning\n [refuse --check-config --output json] page  notify \ndoyen: xxxxxxxxx`,
	} {
		k := keep(t, []string{"NOTIFY_SOCKET=/nobody"}, how)
		for range 2 {
			if got := k.line("trial"); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s\nwant %s", how, got, want)
			}
		}
	}
}

func TestATrialOfArgumentsAfterTheFlags(t *testing.T) {
	for given, want := range map[string]string{
		"doyen agent --name a":    "doyen agent --name a --check-config --output json",
		"doyen agent --name a --": "doyen agent --name a --check-config --output json --",
	} {
		if got := strings.Join(checked(strings.Fields(given)), " "); got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}

func TestATrialThatDoesNotEndIsKilled(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &keeper{page: new(page), trial: trial{pid: cmd.Process.Pid, begun: 1, endBy: 5}}
	k.page.trial.asked.Store(1)
	if k.stepTrial(4); k.trial.endBy != 5 {
		t.Errorf("it looks again at %d", k.trial.endBy)
	}
	k.stepTrial(5)
	_ = cmd.Wait() // wait also stores the state
	k.tried(0, cmd.ProcessState.Sys().(syscall.WaitStatus))
	if ends := syscall.WaitStatus(k.page.trial.ends.Load()); ends.Signal() != syscall.SIGKILL || k.page.trial.done.Load() != 1 {
		t.Errorf("it ended with %v, done %d", ends, k.page.trial.done.Load())
	}
}
