package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestADirectoryOfADeadAgentIsNoMistakeOfTheConfiguration: the former agent was killed, but one of its threads still
// waits for a disk. The service then has to try again, not to give up.
func TestADirectoryOfADeadAgentIsNoMistakeOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holder func(*testing.T) int
		dead   bool
	}{
		"a zombie":  {zombie, true},
		"a process": {func(*testing.T) int { return os.Getpid() }, false},
		"unknown":   {func(*testing.T) int { return 1 << 30 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lock")
			held, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(held, "%d a\n", c.holder(t))
			_, err = acquire(path, "b")
			if _, mistake := errors.AsType[*Error](err); errors.Is(err, ErrEnding) != c.dead || mistake == c.dead {
				t.Fatalf("%v", err)
			}
		})
	}
}

// zombie starts a process that ends, and waits for it only at the end of the test.
func zombie(t *testing.T) int {
	c := exec.Command("true")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() })
	_, _ = out.Read(make([]byte, 1)) // returns when the process ends, since the kernel then closes its files
	return c.Process.Pid
}
