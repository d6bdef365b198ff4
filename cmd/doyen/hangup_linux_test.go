package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// SIGHUP makes an agent reload and never ends it: with a keeper, without one, and under nohup.
func TestAHangupReloadsAndNeverEndsAnAgent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []struct{ keeper, nohup bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
		dir, err := os.MkdirTemp("/tmp", "doyen")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		file, socket := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "s")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("preempt-delay: 1s\n")
		keeper := "--keeper=false"
		if how.keeper {
			keeper = "--keeper"
		}
		if how.nohup {
			signal.Ignore(syscall.SIGHUP)
			defer signal.Reset(syscall.SIGHUP)
		}
		command := exec.Command(self)
		command.Args = []string{"doyen", "agent", "--config", file, keeper, "--name", "a", "--data-dir", filepath.Join(dir, "data"),
			"--socket", socket, "--gossip-port", "0", "--peer-port", "0"}
		command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10")
		out, err := command.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(time.Minute, func() { command.Process.Kill() })
		lines := bufio.NewScanner(out)
		await := func(text string) {
			t.Helper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), text) {
					return
				}
			}
			t.Fatalf("%+v: it ended before %q", how, text)
		}
		await(" ready: ")
		c := client.New(socket)
		defer c.Close()
		before, err := c.Agent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var led api.Change
		for led, err = range c.Follow(t.Context(), "default", time.Minute) {
			if err != nil {
				t.Fatalf("%+v: %v", how, err)
			}
			if led.IsLeader {
				break
			}
		}
		for _, step := range []struct{ file, says string }{
			{"preempt-delay: 2s\n", "applied=preempt-delay"},
			{"preempt-delay: soon\n", "nothing was changed"},
		} {
			write(step.file)
			if err := command.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			await(step.says)
		}
		after, err := c.Agent(t.Context())
		if err != nil || after.PID != before.PID || after.PreemptDelayMS != 2000 {
			t.Errorf("%+v: %v, before %+v, after %+v", how, err, before, after)
		}
		if e, err := c.Election(t.Context(), "default", client.ElectionOptions{}); err != nil || !e.IsLeader || e.Term != led.Term {
			t.Errorf("%+v: %v, %+v; want that it leads in term %d, as before", how, err, e, led.Term)
		}
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%+v: %v", how, err)
		}
		stuck.Stop()
	}
}
