package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// acquire locks the directory for the life of this process. The kernel releases the lock
// however the process ends, so a lock file that is left behind is not an obstacle.
func acquire(path, name string) (*os.File, error) {
	dir := filepath.Dir(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &Error{Path: dir, Problem: "can't be used: " + cause(err), Hint: "this agent's user must be able to write there", Err: err}
	}
	if err := lock(f); err != nil {
		owner := describe(f)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &Error{Path: dir, Problem: "is in use by " + owner, Hint: "stop it, or name another directory with --data-dir", Err: err}
		}
		return nil, &Error{Path: dir, Problem: "can't be locked: " + err.Error(), Hint: "use a local file system", Err: err}
	}
	if err := f.Truncate(0); err == nil {
		// The holder's name and process are only for error messages.
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), name), 0)
	}
	return f, nil
}

// lockWait is how long a start waits for an agent that was just killed: the kernel may need a
// moment to end it. lockEvery is how often it asks: the kernel tells nobody in time.
const (
	lockWait  = 2 * time.Second
	lockEvery = 5 * time.Millisecond
)

func lock(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockEvery) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return err
		}
	}
}

// describe reads from the lock's file which process holds the lock.
func describe(f *os.File) string {
	buf := make([]byte, 128)
	n, _ := f.ReadAt(buf, 0)
	fields := bytes.Fields(buf[:n])
	if len(fields) != 2 {
		return "another agent"
	}
	return fmt.Sprintf("agent %s (pid %s)", fields[1], fields[0])
}
