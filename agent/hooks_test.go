package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/api"
)

func TestAHookThatOthersCanWriteStopsTheStartOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: only root's hooks are checked")
	}
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*agent.Config){
		"on-change": func(c *agent.Config) { c.OnChange = path + " all" },
		"elections.payments.on-change": func(c *agent.Config) {
			c.Elections = map[string]agent.ElectionConfig{"payments": {OnChange: "exec " + path}}
		},
	} {
		_, err := resolved(t, change)
		bad, ok := errors.AsType[*agent.ConfigError](err)
		if !ok || bad.Flag != flag || !strings.Contains(bad.Problem, "chmod go-w") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// From the start to the stop, each election's own command reads what happened.
func TestTheHookReadsEachChangeAsJSON(t *testing.T) {
	c := lone(t)
	trail := filepath.Join(t.TempDir(), "trail")
	c.OnChange = "cat >> " + trail + ".all"
	c.Elections = map[string]agent.ElectionConfig{"default": {OnChange: "cat >> " + trail}, "payments": {OnChange: "cat >> " + trail + ".payments"}}
	client, _, stop := start(t, c)
	follow(t, client, leads)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var change api.Change
		if err := json.Unmarshal([]byte(line), &change); err != nil || change.BoottimeNS == 0 || change.Time.IsZero() || change.Election != "default" {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, change.Type+" "+change.Reason)
	}
	// The word of the lead may be left out, if it was over before its turn.
	if all := strings.Join(got, ", "); all != "no_leader the agent starts, leader elected, no_leader shut down" && all != "no_leader the agent starts, no_leader shut down" {
		t.Errorf("the hook read: %s", all)
	}
	if text, err := os.ReadFile(trail + ".payments"); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("an election of its own read %q, %v", text, err)
	}
	if _, err := os.Stat(trail + ".all"); err == nil {
		t.Error("the command of all was run for an election that has its own")
	}
}

// A next agent would act beside what the hook has not taken away yet.
func TestTheDataDirectoryIsLockedWhileTheHookRunsAtTheStop(t *testing.T) {
	c := lone(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	c.OnChange = `[ $DOYEN_EVENT != none ] || [ $DOYEN_TERM = 0 ] || cat ` + gate
	client, out, stop := start(t, c)
	follow(t, client, leads)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	out.wait(t, "waiting for the hook to finish")
	if free(t, c.DataDir) {
		t.Error("the hook runs, and another agent could start")
	}
	if err := os.WriteFile(gate, nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if !free(t, c.DataDir) {
		t.Error("the agent has stopped, and its directory is locked")
	}
}

// free reports whether an agent could lock the directory.
func free(t *testing.T, dir string) bool {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
