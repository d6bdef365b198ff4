package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// reloads writes the configuration of agents and reloads them.
func (m *mesh) reloads(t *testing.T, config string, names ...string) {
	t.Helper()
	for _, name := range names {
		m.write(t, name+".yaml", config)
		if outcome, err := m.client(name).Reload(t.Context()); err != nil || !outcome.Done {
			t.Fatalf("%s: %+v, %v", name, outcome, err)
		}
	}
}

// leader waits until all agents report the same leader, or none, and want accepts it.
func (m *mesh) leader(t *testing.T, want func(string) bool) (leader string) {
	t.Helper()
	m.until(t, "they agree", func(ctx context.Context) bool {
		for i, name := range []string{"a", "b", "c"} {
			e, err := m.client(name).Election(ctx, "default", client.ElectionOptions{})
			if err != nil {
				return false
			}
			now := ""
			if e.Leader != nil {
				now = e.Leader.Name
			}
			if i == 0 {
				leader = now
			}
			if now != leader || now == "" && e.State != api.StateIdle {
				return false
			}
		}
		return want(leader)
	})
	return leader
}

// A check that fails on all hosts leaves no leader. With keep-last the last leader leads on, in its term, and
// hands over to the first host whose check succeeds.
func TestACheckThatIsWrongOnAllHosts(t *testing.T) {
	t.Parallel()
	const good, wrong, kept = "check: {command: /bin/true, every: 20ms, keep-last: true}\n",
		"check: {command: /bin/false, every: 20ms, fall: 2}\n", "check: {command: /bin/false, every: 20ms, fall: 2, keep-last: true}\n"
	all := []string{"a", "b", "c"}
	m := keptWith(t, "a", "#!/bin/sh\n", good+"# %s\n", all...)
	m.reloads(t, kept, all...)
	for _, name := range all {
		m.until(t, name+"'s check fails", func(context.Context) bool {
			for _, w := range m.agent(t, name).Warnings {
				if w.Code == "check_failed" && strings.Contains(w.Message, "keep-last") {
					return true
				}
			}
			return false
		})
	}
	some := func(leader string) bool { return leader != "" }
	last := m.leader(t, some)
	before, err := m.client(last).Election(t.Context(), "default", client.ElectionOptions{})
	if err != nil || !before.IsLeader {
		t.Fatalf("%+v, %v", before, err)
	}
	other := map[string]string{"a": "b", "b": "c", "c": "a"}[last]
	m.reloads(t, good, other)
	m.leader(t, func(leader string) bool { return leader == other })
	m.reloads(t, wrong, all...)
	m.leader(t, func(leader string) bool { return leader == "" })
	m.reloads(t, kept, all...)
	m.leader(t, some)
}

// A reload refuses a missing program, and a shell line for root, as --check-config and a first start do. A next
// life starts nevertheless. The agent may start no process to find out.
func TestAReloadJudgesAsCheckConfigDoes(t *testing.T) {
	t.Parallel()
	m := keptWith(t, "a", "#!/bin/sh\n", "on-change: %s\n", "a")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := m.agents["a"].Args
	said := func(more ...string) string {
		c := exec.Command(self)
		c.Args = append(append([]string{}, start...), more...)
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != exitConfig {
			t.Errorf("%v: exit %d: %s", more, c.ProcessState.ExitCode(), out)
		}
		line, _, _ := bytes.Cut(out, []byte("\n"))
		return strings.TrimPrefix(string(line), "doyen: ")
	}
	hook := "on-change: " + filepath.Join(m.dir, "hook") + "\n"
	const correct, script = "correct the command, or install what it runs", "give the absolute path of a program with its arguments, for example of a script that holds this line"
	for config, do := range map[string]string{hook + "check: {command: /nowhere/check}\n": correct, hook + "check: /nowhere/else --now\n": correct, "on-change: /nowhere/hook\n": correct,
		hook + "elections: {pay: {on-change: /nowhere/program}}\n": correct, hook + "check: /bin/true; /bin/true\n": script, "on-change: ls\n": script} {
		if do == script && os.Geteuid() != 0 {
			continue // only root's commands are checked
		}
		m.write(t, "a.yaml", config)
		want := said("--check-config")
		if outcome, err := m.client("a").Reload(t.Context()); err != nil || outcome.Done || outcome.Message != want || !strings.Contains(want, do) {
			t.Errorf("%q: %+v, %v; --check-config says %q", config, outcome, err, want)
		}
		if got := said("--data-dir", filepath.Join(m.dir, "other"), "--socket", filepath.Join(m.dir, "other.sock")); got != want {
			t.Errorf("a start with %q says %q, not %q", config, got, want)
		}
	}
	for _, config := range []string{hook + "check: /bin/true\n", hook + "check: {command: /bin/cat /dev/null}\n"} {
		m.reloads(t, config, "a")
	}
	m.write(t, "a.yaml", "on-change: /nowhere/hook\n")
	former := m.agent(t, "a")
	if p, err := os.FindProcess(former.PID); err != nil || p.Kill() != nil {
		t.Fatal("it can't be killed")
	}
	m.until(t, "the next life runs", func(ctx context.Context) bool {
		now, err := m.client("a").Agent(ctx)
		return err == nil && now.BootID != former.BootID
	})
}

// The owner of the directory is most probably the agent's user.
func TestRootGivesTheKeyToTheOwnerOfItsDirectory(t *testing.T) {
	const owner = 65534
	dir := t.TempDir()
	if os.Geteuid() != 0 || os.Chown(dir, owner, owner) != nil {
		t.Skip("needs root, as which CI runs this")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "key")
	c := exec.Command(self)
	c.Args = []string{"doyen", "keygen", "--out", path}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if of, is := info.Sys().(*syscall.Stat_t); !is || of.Uid != owner || of.Gid != owner || info.Mode().Perm() != 0o600 {
		t.Errorf("%+v, mode %o", of, info.Mode())
	}
}
