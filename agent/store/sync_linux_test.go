package store_test

import (
	"github.com/doyen-election/doyen/election"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAWriteWhoseSyncFailsIsAnError writes to a pipe, which accepts data and can't be synced.
func TestAWriteWhoseSyncFailsIsAnError(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pipe := filepath.Join(dir, "state.new")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that the writer finds a reader and does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := s.Write(election.Persist{State: &state}); err == nil || !strings.Contains(err.Error(), "sync") {
		t.Fatalf("a write that could not be synced: %v", err)
	}
}

// TestAWriteWhoseRenameIsNotSyncedIsAnError makes the directory unreadable: files in it can be made and
// renamed, but it can't be opened for the sync.
func TestAWriteWhoseRenameIsNotSyncedIsAnError(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	obeyModes(t)
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if err := s.Write(election.Persist{State: &state}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Fatalf("a write whose rename could not be synced: %v", err)
	}
}

// obeyModes makes this goroutine obey file modes even if root runs the test. The thread ends with the goroutine.
func obeyModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
}
