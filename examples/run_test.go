//go:build linux

package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// execStart returns the command of a unit.
func execStart(t *testing.T, unit string) []string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			return strings.Fields(command)
		}
	}
	t.Fatalf("%s starts nothing", unit)
	return nil
}

// stand runs `doyen run` beside an agent until the test ends.
func (m *member) stand(t *testing.T, env []string, command ...string) *exec.Cmd {
	t.Helper()
	run := exec.Command(command[0], command[1:]...)
	run.Env = append(append(os.Environ(), "DOYEN_SOCKET="+m.socket, "NAME="+m.name), env...)
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said := &logbook{}
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
		if t.Failed() {
			t.Logf("doyen run on %s: %s", m.name, said)
		}
	})
	return run
}

// journal is the file in which a test's programs note when they start, and in which term.
type journal struct {
	t    *testing.T
	path string
}

// newProgram makes a program that holds a lock as long as it runs. If another process holds the lock, it notes
// that.
func newProgram(t *testing.T) (program string, j journal) {
	t.Helper()
	dir := t.TempDir()
	j = journal{t, filepath.Join(dir, "journal")}
	never := filepath.Join(dir, "never")
	if err := syscall.Mkfifo(never, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "payments")
	script := fmt.Sprintf(`#!/bin/sh
exec 9>%s
flock -n 9 || echo "$NAME overlaps" >>%s
echo "$NAME $DOYEN_TERM" >>%s
exec cat %s
`, filepath.Join(dir, "lock"), j.path, j.path, never)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, j
}

// started returns one line for each start so far.
func (j journal) started() []string {
	j.t.Helper()
	text, err := os.ReadFile(j.path)
	if err != nil {
		return nil
	}
	if strings.Contains(string(text), "overlaps") {
		j.t.Fatalf("two ran at once:\n%s", text)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }) // the shell creates the file before it writes to it
}

func TestTheProgramRunsOnTheLeaderAlone(t *testing.T) {
	t.Parallel()
	need(t, "sh", "flock")
	program, journal := newProgram(t)
	command := execStart(t, "systemd/payments.service")
	for i, word := range command {
		command[i] = map[string]string{"/usr/bin/doyen": doyen.path, "/usr/local/bin/payments": program}[word]
		if command[i] == "" {
			command[i] = word
		}
	}
	tr := start(t, none)
	runs := map[string]*exec.Cmd{}
	for _, m := range tr.agents {
		runs[m.name] = m.stand(t, nil, command...)
	}
	nth := func(n int) *member {
		t.Helper()
		tr.await(fmt.Sprintf("start %d of the program", n), func() bool { return len(journal.started()) >= n })
		for _, m := range tr.agents {
			if strings.HasPrefix(journal.started()[n-1], m.name+" ") {
				return m
			}
		}
		t.Fatalf("started by %q", journal.started()[n-1])
		return nil
	}
	first := nth(1)
	tr.handOver(first, "payments")
	nth(2).kill(t) // this kills the agent: doyen run ends the program by its own clock
	third := nth(3)
	if err := runs[third.name].Process.Signal(syscall.SIGTERM); err != nil { // as systemctl stop does
		t.Fatal(err)
	}
	nth(4)
	var last uint64
	for _, line := range journal.started() {
		var who string
		var term uint64
		if _, err := fmt.Sscan(line, &who, &term); err != nil || term <= last {
			t.Errorf("terms do not rise: %q", journal.started())
		}
		last = term
	}
}

// Payouts are made as the example's comment says, by the leader of the time.
func TestPayoutsCarryTheTokenOfTheRunThatMadeThem(t *testing.T) {
	t.Parallel()
	env := database(t)
	if code, out := run(t, env, "psql", "--quiet", "-f", "postgresql/fence.sql"); code != 0 {
		t.Fatal(out)
	}
	payout, err := filepath.Abs("postgresql/payout")
	if err != nil {
		t.Fatal(err)
	}
	never := filepath.Join(t.TempDir(), "never")
	if err := syscall.Mkfifo(never, 0o600); err != nil {
		t.Fatal(err)
	}
	tr := start(t, none)
	for _, m := range tr.agents {
		m.stand(t, env, doyen.path, "run", "payments", "--", "sh", "-c", payout+` "by $NAME" && exec cat `+never)
	}
	rows := func() []string {
		_, out := run(t, env, "psql", "-At", "-F", " ", "-c", "SELECT term, note FROM payouts ORDER BY id")
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	tr.await("a payout", func() bool { return rows()[0] != "" })
	for _, m := range tr.agents {
		if strings.HasSuffix(rows()[0], "by "+m.name) {
			tr.handOver(m, "payments")
		}
	}
	tr.await("a payout by the successor", func() bool { return len(rows()) >= 2 })
	var first, second uint64
	if _, err := fmt.Sscan(rows()[0], &first); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(rows()[1], &second); err != nil || second <= first {
		t.Errorf("rows %q", rows())
	}
	code, out := run(t, append(env, fmt.Sprintf("DOYEN_TERM=%d", first)), payout, "late")
	if code != 3 || !strings.Contains(out, "has ended") {
		t.Errorf("a late payout: %d %s", code, out)
	}
}
