package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// filteredWord as the first argument makes this program run another one under the filter. The names of the
// allowed system calls follow, and then the command.
const filteredWord = "run-filtered"

// runFiltered returns only after a failure.
func runFiltered(args []string) error {
	filter := seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: strings.Split(args[0], ",")}},
	}}
	if err := seccomp.LoadFilter(filter); err != nil {
		return fmt.Errorf("load the filter: %w", err)
	}
	return syscall.Exec(args[1], args[1:], os.Environ())
}

// allowed returns the system calls that the unit allows, as systemd would read it.
func allowed(t *testing.T) []string {
	t.Helper()
	unit, err := os.ReadFile("files/doyen.service")
	if err != nil {
		t.Fatal(err)
	}
	known, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for line := range strings.Lines(string(unit)) {
		words, found := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !found {
			continue
		}
		words, without := strings.CutPrefix(words, "~")
		for _, group := range strings.Fields(words) {
			names := []string{group}
			if strings.HasPrefix(group, "@") {
				names = members(t, group)
			}
			for _, name := range names {
				if _, ok := known.SyscallNames[name]; ok {
					calls[name] = !without
				}
			}
		}
	}
	// systemd always allows the calls that it needs to start a service (@default).
	for _, name := range members(t, "@default") {
		if _, ok := known.SyscallNames[name]; ok {
			calls[name] = true
		}
	}
	var names []string
	for name, allow := range calls {
		if allow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// members returns the system calls of a group, and of the groups in it.
func members(t *testing.T, group string) (names []string) {
	t.Helper()
	scanner := bufio.NewScanner(strings.NewReader(run(t, "systemd-analyze", "syscall-filter", "--no-pager", group)))
	for scanner.Scan() {
		word := strings.TrimSpace(scanner.Text())
		switch {
		case !strings.HasPrefix(scanner.Text(), " "), strings.HasPrefix(word, "#"), word == "":
		case strings.HasPrefix(word, "@"):
			names = append(names, members(t, word)...)
		default:
			names = append(names, word)
		}
	}
	return names
}

// The tests of the agent, the hook and the guard run under the filter, with a user without rights, as the
// service does.
func TestTheAgentNeedsNoMoreSystemCallsThanTheUnitAllows(t *testing.T) {
	need(t, "systemd-analyze")
	calls := allowed(t)
	if len(calls) < 200 || slices.Contains(calls, "mount") || slices.Contains(calls, "setuid") || !slices.Contains(calls, "futex") || !slices.Contains(calls, "seccomp") {
		t.Fatalf("read from the unit: %v", calls)
	}
	dir := t.TempDir()
	for at := dir; at != filepath.Dir(at) && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "packaging.test")
	run(t, "cp", self, own)
	filtered := func(folder string, command ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), own, append([]string{filteredWord, strings.Join(calls, ",")}, command...)...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "HOME=/tmp", "TMPDIR=/tmp")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, _ := filtered(dir, "/bin/nice", "-n", "1", "true"); !strings.Contains(out, "not permitted") { // nice only reports it
		t.Errorf("the filter does not filter: %s", out)
	}
	for _, of := range []string{"agent", "internal/act/hook", "internal/act/guard"} {
		binary := filepath.Join(dir, filepath.Base(of)+".test")
		build := exec.Command("go", "test", "-c", "-o", binary, "./"+of)
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		const asRoot = "TestAFullDiskStopsTheVoting" // writes to /dev/full through a link
		if out, err := filtered(filepath.Join("..", of), binary, "-test.timeout=5m", "-test.skip", asRoot); err != nil {
			t.Errorf("the tests of %s: %v\n%s", of, err, out)
		}
	}
}
