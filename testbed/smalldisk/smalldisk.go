//go:build linux

// Package smalldisk runs a part of a test in a separate process, in which a directory is a small
// disk in memory. The process has its own user and mount namespaces, so nothing is left behind. If
// the system does not allow such namespaces, the test is skipped.
package smalldisk

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set in the environment of the process: its value is the directory.
const inside = "DOYEN_TEST_SMALL_DISK"

// Main is what TestMain calls. It runs the tests. In the process that Run starts, it instead mounts a
// disk of the given size, such as "16k", and calls body with the disk's directory.
func Main(m *testing.M, size string, body func(dir string) error) {
	dir := os.Getenv(inside)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := unix.Mount("none", dir, "tmpfs", 0, "size="+size)
	if err == nil {
		err = body(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run starts the test binary again as the process with the disk. The test fails if the body given to Main fails.
func Run(t *testing.T) {
	t.Helper()
	self := exec.CommandContext(t.Context(), "/proc/self/exe")
	self.Env = append(os.Environ(), inside+"="+t.TempDir())
	self.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	said, err := self.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skipf("no namespaces to mount a small disk in: %v", err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
