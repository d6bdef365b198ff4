package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// kept starts agents with keepers, one of which leads. a's hook runs until it is ended, and a's check succeeds.
func kept(t *testing.T, leader string) *mesh {
	t.Helper()
	return keptWith(t, leader, "#!/bin/sh\necho \"$DOYEN_EVENT\" >> $0.events\n[ \"$DOYEN_EVENT\" != leading ] || exec sleep 1000\n",
		"on-change: %s\ncheck: {command: /bin/true, every: 1s}\n", "a")
}

// keptWith starts agents with keepers, one of which leads. The configured ones have that configuration, with
// the hook's path in it.
func keptWith(t *testing.T, leader, hook, config string, configured ...string) *mesh {
	t.Helper()
	m := newMesh(t)
	m.keep(t, leader, hook, config, configured...)
	return m
}

func (m *mesh) keep(t *testing.T, leader, hook, config string, configured ...string) {
	t.Helper()
	records, err := os.MkdirTemp("/dev/shm", "doyen") // in memory, if the kernel has it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(records) })
	m.record = record.Path(records, m.socket("a"), "a")
	m.write(t, "hook", hook)
	for _, name := range []string{"a", "b", "c"} {
		m.more = []string{"--keeper", "--record-dir", records}
		if slices.Contains(configured, name) {
			m.write(t, name+".yaml", fmt.Sprintf(config, filepath.Join(m.dir, "hook")))
			m.more = append(m.more, "--config", filepath.Join(m.dir, name+".yaml"))
		}
		m.start(t, name)
	}
	m.lead(t, leader)
}

func (m *mesh) agent(t *testing.T, name string) (a api.Agent) {
	t.Helper()
	m.until(t, name+" answers", func(ctx context.Context) bool {
		var err error
		a, err = m.client(name).Agent(ctx)
		return err == nil && a.PID != 0
	})
	return a
}

// doyens returns the descendants of a process that run this program, with their arguments.
func doyens(t *testing.T, of int) map[int][]string {
	t.Helper()
	all := map[int][]string{}
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(of) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the process may have ended
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			exe, err := os.Stat("/proc/" + child + "/exe")
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			private := os.IsPermission(err) // only root may see the program file of an agent and its keeper
			if (private || err == nil && os.SameFile(exe, own)) && len(line) > 0 {
				all[pid] = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
			}
			maps.Copy(all, doyens(t, pid))
		}
	}
	return all
}

// Every process that can run on a host has to be in the list of docs/architecture.md.
func TestTheProcessesOfAHostAreThoseThatTheDocumentationNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n## Processes on a host\n")
	list, _, _ = strings.Cut(list, "\n## ")
	want := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| \*\*[a-z, ]+\*\* \| (.*?) \|`).FindAllStringSubmatch(list, -1) {
		for _, word := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			want[word[1]] = true
		}
	}
	m := kept(t, "a")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := &exec.Cmd{Path: self, Args: []string{"doyen", "run", "pay", "--socket", m.socket("a"), "--check", "/bin/true", "--", "sleep", "1000"},
		SysProcAttr: m.member()}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	}()
	m.until(t, "everything runs", func(context.Context) bool {
		events, _ := os.ReadFile(filepath.Join(m.dir, "hook.events"))
		return len(doyens(t, run.Process.Pid)) > 0 && strings.Contains(string(events), "leading")
	})
	found := map[string]bool{}
	for pid, args := range doyens(t, os.Getpid()) {
		found[args[1]] = true
		t.Log(pid, args[1])
	}
	if !maps.Equal(found, want) {
		t.Errorf("there are %v, and docs/architecture.md has %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)))
	}
}

// rights returns the fields of a status in /proc that describe a process's rights.
func rights(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if strings.HasPrefix(name, "Cap") || name == "Seccomp" || name == "NoNewPrivs" {
			all[name] = strings.TrimLeft(value, "0")
		}
	}
	return all
}

// The keeper's rights are only for doyen act. The agent, which is on the network, has no capability and may
// execute no program. The same holds for the next life, after a kill and after a restart.
func TestAnAgentHasNoRightsAndNeedsNone(t *testing.T) {
	m := kept(t, "a")
	now := m.agent(t, "a")
	for i, end := range []func(){
		func() {},
		func() { _ = syscall.Kill(now.PID, syscall.SIGKILL) }, // the process exists
		func() {
			if outcome, err := m.client("a").Restart(t.Context()); err != nil || !outcome.Done {
				t.Errorf("restart: %+v, %v", outcome, err)
			}
		},
	} {
		end()
		former := now.BootID
		m.until(t, "the next life leads", func(ctx context.Context) bool {
			now = m.agent(t, "a")
			e, err := m.client("a").Election(ctx, "default", client.ElectionOptions{})
			return err == nil && e.IsLeader && (i == 0 || now.BootID != former)
		})
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", now.PID))
		if err != nil || len(threads) < 2 {
			t.Fatal(threads, err)
		}
		for _, thread := range threads {
			want := map[string]string{"CapInh": "", "CapPrm": "", "CapEff": "", "CapBnd": "", "CapAmb": "", "NoNewPrivs": "1", "Seccomp": "2"}
			got := rights(t, thread)
			if os.Geteuid() != 0 {
				want["CapBnd"] = got["CapBnd"] // only root may change it
			}
			if !maps.Equal(got, want) {
				t.Errorf("life %d: %s: %v, want %v", now.Life, thread, got, want)
			}
		}
	}
	for pid, args := range doyens(t, os.Getpid()) {
		if got, own := rights(t, fmt.Sprintf("/proc/%d/status", pid)), rights(t, "/proc/self/status"); args[1] != "agent" && !maps.Equal(got, own) {
			t.Errorf("%v has %v, and the keeper was started with %v", args[:2], got, own)
		}
	}
}

// After its start, an agent starts no process during a takeover, hooks, checks, a bug report, a reload or a
// restart.
func TestAnAgentStartsNoProcess(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs strace, and root, who alone may trace an agent; CI has both")
	}
	m := kept(t, "b")
	traced := m.agent(t, "a")
	trace := filepath.Join(m.dir, "trace")
	tracer := exec.Command(strace, "-f", "-e", "trace=process", "-o", trace, "-p", strconv.Itoa(traced.PID))
	said, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	defer tracer.Process.Kill()
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "attached") {
	}
	go func() {
		for lines.Scan() { // a line for each new thread
		}
	}()
	_ = m.agents["b"].Process.Kill() // the process exists
	m.until(t, "a leads, and its hook runs", func(ctx context.Context) bool {
		e, err := m.client("a").Election(ctx, "default", client.ElectionOptions{})
		events, _ := os.ReadFile(filepath.Join(m.dir, "hook.events"))
		if err == nil && e.Leader != nil && e.Leader.Name == "c" {
			_, _ = m.client("a").Transfer(ctx, "default", "a")
		}
		return err == nil && e.IsLeader && strings.HasSuffix(string(events), "leading\n")
	})
	var out, problems bytes.Buffer
	for _, args := range [][]string{{"debug", "--cpu-profile", "1s", "--out", filepath.Join(m.dir, "report")}, {"reload"}, {"restart"}} {
		if code := run(t.Context(), append(append([]string{"doyen"}, args...), "--socket", m.socket("a")), nil, &out, &problems); code != exitOK {
			t.Errorf("%v: %d: %s%s", args, code, &out, &problems)
		}
	}
	_ = tracer.Wait() // the tracer ends with the traced process
	text, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(text), "exit_group(") {
		t.Fatalf("%v; traced:\n%s", err, text)
	}
	starts := regexp.MustCompile(`\b(execve|execveat|fork|vfork|clone|clone3)\(`)
	for line := range strings.Lines(string(text)) {
		if starts.MatchString(line) && !strings.Contains(line, "CLONE_THREAD") {
			t.Error(line)
		}
	}
}

// A process of the agent's own user can't read the agent's keys or the keeper's environment, nor trace either
// of them. But it can see what a keeper needs to see of its agent. Root without capabilities counts as such a
// user.
func TestNoProcessOfItsUserLooksIntoAnAgent(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(m.dir, "doyen")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	bare := func(args ...string) *exec.Cmd {
		if os.Geteuid() == 0 {
			args = append([]string{"setpriv", "--bounding-set=-all"}, args...)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.SysProcAttr = m.member()
		return cmd
	}
	for _, keeper := range []string{"true", "false"} {
		agent := bare(program, "agent", "--name", "a", "--bind", m.addr("a"), "--voters", "a", "--data-dir", m.dir+"/data"+keeper, "--socket", m.socket("a"), "--keeper="+keeper)
		other := bare("sleep", "1000")
		if err := errors.Join(os.MkdirAll(m.dir+"/a", 0o700), agent.Start(), other.Start()); err != nil {
			t.Fatal(err)
		}
		life := strconv.Itoa(m.agent(t, "a").PID)
		const look = `export LC_ALL=C
			for f in environ mem; do cat /proc/$1/$f 2>&1 >/dev/null | grep -q denied && echo $f; done
			for f in root fd/0 exe cwd; do readlink /proc/$1/$f >/dev/null || echo $f; done
			cat /proc/$1/stat /proc/$1/status /proc/$1/task/$1/schedstat /proc/$1/task/$1/stat /proc/$1/task/$1/children >/dev/null || echo unseen`
		const all = "environ\nmem\nroot\nfd/0\nexe\ncwd\n"
		for pid, want := range map[string]string{
			strconv.Itoa(other.Process.Pid): "", strconv.Itoa(agent.Process.Pid): all, life: all,
		} {
			out, err := bare("sh", "-c", look, "sh", pid).CombinedOutput()
			if string(out) != want {
				t.Errorf("with --keeper=%s, denied of process %s of %d and %s: %q, want %q; %v", keeper, pid, agent.Process.Pid, life, out, want, err)
			}
		}
		for _, c := range []*exec.Cmd{agent, other} {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		}
	}
}
