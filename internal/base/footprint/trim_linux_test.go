package footprint

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// In a position-independent program, the loader writes addresses into pages that it then makes read-only.
// Dropping these pages made the agent crash.
func TestWhatTheLoaderWroteStays(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	part, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(part)
	part[0]++ // the first byte of the file is 0x7f
	want := part[0]
	if err := unix.Mprotect(part, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	if part[0] != want {
		t.Errorf("what was written there is gone: %#x, want %#x", part[0], want)
	}
}
