//go:build linux

// Package examples_test runs every example unchanged, against real agents on loopback.
package examples_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

const patience = time.Minute // a busy machine takes long to form a cluster

// program is the doyen that all tests run, and its folder.
type program struct{ path, dir string }

var doyen program // set by TestMain

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	if err := flag.Set("test.parallel", "4"); err != nil { // the tests mostly wait for leases
		return 0, err
	}
	dir, err := os.MkdirTemp("", "doyen-examples")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path, err := hosts.Build(context.Background(), dir, hosts.Product)
	if err != nil {
		return 0, err
	}
	doyen = program{path: path, dir: dir}
	return m.Run(), nil
}

// need skips the test where a program is missing.
func need(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// logbook collects an agent's log. It can be read meanwhile.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// trio is three agents.
type trio struct {
	t      *testing.T
	agents [3]*member
}

type member struct {
	name, dir, socket string
	client            *client.Client
	cmd               *exec.Cmd
	log               *logbook
}

// start runs a, b and c. settings returns more lines for each one's configuration. If under is not empty, it
// precedes the agent's command.
func start(t *testing.T, settings func(name string) string, under ...string) *trio {
	t.Helper()
	tr := &trio{t: t}
	ports := loopbacks.FreePorts(t, 6)
	for i, name := range []string{"a", "b", "c"} {
		dir, err := os.MkdirTemp("", "doyen") // t.TempDir can be too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		m := &member{name: name, dir: dir, socket: filepath.Join(dir, "s"), log: &logbook{}}
		m.client = client.New(m.socket)
		config := fmt.Sprintf("name: %s\ndata-dir: %s/data\nsocket: %s\ngossip-port: %d\npeer-port: %d\njoin: [\"127.0.0.1:%d\"]\nvoters: [a, b, c]\nkeeper: %t\n%s",
			name, dir, m.socket, ports[2*i], ports[2*i+1], ports[0], strings.Contains(settings(name), "on-change"), settings(name)) // only a keeper starts doyen act
		file := filepath.Join(dir, "agent.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		command := append(under, doyen.path, "agent", "--config", file)
		m.cmd = exec.Command(command[0], command[1:]...)
		m.cmd.Stderr = m.log
		m.cmd.Env = append(os.Environ(), "DOYEN_SOCKET=")
		// The kernel kills the agents if the test is killed.
		m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := m.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.stop(t) })
		tr.agents[i] = m
	}
	tr.leader(nil)
	return tr
}

// stop ends the agent, which runs its hook a last time.
func (m *member) stop(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Logf("agent %s:\n%s", m.name, m.log)
		}
	}()
	m.client.Close()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return // the test has killed it
	}
	late := time.AfterFunc(patience, func() { _ = m.cmd.Process.Kill() })
	defer late.Stop()
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", m.name, err, m.log)
	}
}

// kill ends the agent without a hand-over.
func (m *member) kill(t *testing.T) {
	t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.cmd.Wait()
}

// leading returns the agent that reports that it leads the election.
func (tr *trio) leading(election string) *member {
	for _, m := range tr.agents {
		if e, err := m.client.Election(tr.t.Context(), election, client.ElectionOptions{}); err == nil && e.IsLeader {
			return m
		}
	}
	return nil
}

// leader waits until an agent other than the given one leads default.
func (tr *trio) leader(not *member) (found *member) {
	tr.t.Helper()
	tr.await("a leader", func() bool {
		found = tr.leading("default")
		return found != nil && found != not
	})
	return found
}

// handOver makes the agent resign until another one leads. At first the others may not be candidates yet. On a
// busy machine an agent may also lose its lease.
func (tr *trio) handOver(m *member, election string) (found *member) {
	tr.t.Helper()
	tr.await("a successor of "+m.name, func() bool {
		if found = tr.leading(election); found == m {
			ctx, cancel := context.WithTimeout(tr.t.Context(), patience)
			defer cancel()
			_, _ = m.client.Resign(ctx, election)
		}
		return found != nil && found != m
	})
	return found
}

// logged reports whether any agent's log contains the text.
func (tr *trio) logged(text string) bool {
	return slices.ContainsFunc(tr.agents[:], func(m *member) bool { return strings.Contains(m.log.String(), text) })
}

func (tr *trio) await(what string, holds func() bool) { tr.t.Helper(); await(tr.t, what, holds) }

// await repeats the check until it succeeds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// run runs a command and returns its exit code and its output.
func run(t *testing.T, env []string, command string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatalf("%s %v: %v", command, args, err)
	}
	if failed {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// copyOf copies an example, with some words replaced, to a place from which root may run it.
func copyOf(t *testing.T, path string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			t.Fatalf("%s holds no %q", path, pairs[i])
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, []byte(strings.NewReplacer(pairs...).Replace(string(text))), info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
	return to
}
