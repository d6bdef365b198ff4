package hook_test

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/election"
)

// child, if set in the environment, makes this test binary an agent's stand-in:
// it runs the command it names as a leader's hook, until it is killed.
const child = "DOYEN_TEST_HOOK"

func TestMain(m *testing.M) {
	if command := os.Getenv(child); command != "" {
		r := hook.Start(hook.Commands{All: command}, time.Hour, slog.New(slog.DiscardHandler))
		r.Enqueue(hook.Event{Election: "default", Event: election.Leading, Term: 1})
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
		return
	}
	os.Exit(m.Run())
}

// Another agent leads soon; nothing must go on acting for the one that died.
func TestAKilledAgentLeavesNoRunBehind(t *testing.T) {
	dir := t.TempDir()
	alive, never := filepath.Join(dir, "alive"), filepath.Join(dir, "never")
	mkfifo(t, alive)
	mkfifo(t, never)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	// The run's children hold the pipe open as long as one of them lives.
	command.Env = append(os.Environ(), child+"=exec 3> "+alive+"; echo x >&3; (cat "+never+") & cat "+never)
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pipe, err := os.Open(alive)
		if err != nil {
			t.Error(err)
			return
		}
		defer pipe.Close()
		if _, err := pipe.Read(make([]byte, 2)); err != nil {
			t.Error(err)
		}
		if err := command.Process.Kill(); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, pipe); err != nil {
			t.Error(err)
		}
	}()
	await(t, "the end of the run", ended)
	_ = command.Wait() // it was killed
}
