package record

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
)

const inSmallMemory = "RECORD_TEST_SMALL_MEMORY"

// TestMain lets this binary be a process with a small tmpfs of its own.
func TestMain(m *testing.M) {
	dir := os.Getenv(inSmallMemory)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := inFullTmpfs(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A tmpfs without room: no record, a line that says so, and no signal.
func TestAFullTmpfsIsAProblemAndNothingWorse(t *testing.T) {
	self := exec.CommandContext(t.Context(), "/proc/self/exe")
	self.Env = append(os.Environ(), inSmallMemory+"="+t.TempDir())
	self.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	said, err := self.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skipf("no namespaces to mount a small tmpfs in: %v", err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func inFullTmpfs(dir string) error {
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	filler := dir + "/filler"
	for n := size; ; n -= 4096 { // every size that leaves too little
		if err := os.WriteFile(filler, make([]byte, 1<<20-n), 0o600); err != nil {
			return err
		}
		r, _, err := Open(config(dir, 7))
		if n == size {
			if err != nil {
				return fmt.Errorf("it should fit: %w", err)
			}
			if err := r.Destroy(); err != nil {
				return err
			}
			_ = r.Close()
			continue
		}
		if r != nil || !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "\n") {
			return fmt.Errorf("with %d bytes of memory: %v, %v", n, r, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			return fmt.Errorf("left behind: %v", left)
		}
		if n < size-8*4096 {
			break
		}
	}
	return punched(dir, filler)
}

// punched takes the memory of a record's pages away, and lets nobody give it back.
func punched(dir, filler string) error {
	if err := os.Remove(filler); err != nil {
		return err
	}
	r, _, err := Open(config(dir, 8))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, wordRows*8, size-wordRows*8); err != nil {
		return err
	}
	_ = os.WriteFile(filler, make([]byte, 2<<20), 0o600) // as far as it goes
	if err := r.Write(&election.LifeRecord{Rows: []election.Authority{defaults}}); err == nil {
		return errors.New("a record was written where there is no memory")
	}
	_ = r.Close()
	if err := os.Remove(filler); err != nil {
		return err
	}
	if _, past, _ := Open(config(dir, 9)); past != nil {
		return fmt.Errorf("gone on with %+v", past)
	}
	return nil
}
