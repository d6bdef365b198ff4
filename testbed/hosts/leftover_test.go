package hosts_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/doyen-election/doyen/testbed/hosts"
)

func TestAKilledTestbedLeavesNoProcessAndItsFilesToTheNext(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the children of a killed process; agents that are no stand-ins notice")
	}
	t.Run("on loopback", func(t *testing.T) { killTestbed(t, "testbed") })
	t.Run("in namespaces", func(t *testing.T) {
		needNamespaces(t)
		killTestbed(t, "testbed in namespaces")
	})
}

func killTestbed(t *testing.T, kind string) {
	dir := temporary(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testbed := exec.CommandContext(t.Context(), self, "stand-in", kind)
	testbed.Stderr = t.Output()
	out, err := testbed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for len(said) < 3 && lines.Scan() {
		said = append(said, lines.Text())
	}
	testbed.Process.Kill()
	testbed.Wait()
	if len(said) < 3 {
		t.Fatalf("the testbed said only %q", said)
	}
	for _, pid := range said[:2] {
		eventually(t, "process "+pid+" is gone", func() bool { return gone(pid) })
	}
	if _, err := os.Stat(said[2]); err != nil {
		t.Fatalf("the directory of the killed testbed: %v", err)
	}
	next, err := hosts.New(config(1, "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(ended()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(said[2]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next testbed left %s behind", said[2])
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files were left behind", len(left))
	}
}

// gone reports whether a process has ended. A zombie counts as ended.
func gone(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return err != nil || bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X"))
}

func TestTheNextTestbedLeavesAloneWhatIsNotAbandoned(t *testing.T) {
	dir := temporary(t)
	held, err := hosts.NewDir()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	unlocked := filepath.Join(dir, "doyen-testbed-of-somebody")
	if err := os.Mkdir(unlocked, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "doyen-testbed-link")
	if err := os.Symlink(held.Path, link); err != nil {
		t.Fatal(err)
	}
	second, err := hosts.NewDir()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for _, path := range []string{held.Path, unlocked, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
}
