//go:build linux

package netns_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Agents refuse to start as a root that does not own the system's directories. Rerun once made a namespace in which
// every user was such a root. This test runs alone: it writes a program, and a process that another test starts
// meanwhile would hold that file open.
func TestAUserWithoutRightsCutsOffALeader(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root, which CI is, to become another user, and some seconds for real agents")
	}
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "netns.test")
	if err := os.WriteFile(own, program, 0o755); err != nil {
		t.Fatal(err)
	}
	openTun(t)
	again := exec.CommandContext(t.Context(), own, "-test.run=^TestALeaderCutOffSilently", "-test.v", "-rounds=1")
	again.Dir, again.Env = dir, append(os.Environ(), "TMPDIR=/tmp", "HOME=/tmp")
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	out, err := again.CombinedOutput()
	if strings.Contains(string(out), "no networks here") {
		t.Skipf("users may have no namespaces here: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestALeaderCutOffSilently") {
		t.Errorf("%v\n%s", err, out)
	}
}

// openTun lets all users open /dev/net/tun, as most systems do, in what this goroutine starts from
// now on.
func openTun(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test, and its view of the files with it
	const tun = "/dev/net/tun"
	over := t.TempDir()
	node := filepath.Join(over, "tun")
	for _, do := range []func() error{
		func() error { return unix.Unshare(unix.CLONE_NEWNS) },
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("tun", over, "tmpfs", 0, "") },
		func() error { return unix.Mknod(node, unix.S_IFCHR, int(unix.Mkdev(10, 200))) },
		func() error { return os.Chmod(node, 0o666) },
		func() error { return unix.Mount(node, tun, "", unix.MS_BIND, "") },
		func() error { return unix.Unmount(over, unix.MNT_DETACH) },
	} {
		if err := do(); err != nil {
			t.Fatalf("open %s to all: %v", tun, err)
		}
	}
}
