package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// acquire locks the directory until this process ends. The kernel releases the lock however the
// process ends, so a leftover lock file does no harm.
func acquire(path, name string) (*os.File, error) {
	dir := filepath.Dir(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &Error{Path: dir, Problem: "can't be used: " + cause(err), Hint: "this agent's user must be able to write there", Err: err}
	}
	if err := lock(f); err != nil {
		owner, pid := describe(f)
		f.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK) && ending(pid):
			return nil, fmt.Errorf("%s: %w: %s was killed and can't end; perhaps it waits for a disk that hangs: start again when it is gone", dir, ErrEnding, owner)
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, &Error{Path: dir, Problem: "is in use by " + owner, Hint: "stop it, or name another directory with --data-dir", Err: err}
		}
		return nil, &Error{Path: dir, Problem: "can't be locked: " + err.Error(), Hint: "use a local file system", Err: err}
	}
	if err := f.Truncate(0); err == nil {
		// The name and the process are only for the error messages of other agents.
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), name), 0)
	}
	return f, nil
}

// lockWait is how long a start waits for an agent that was just killed, since the kernel may need a moment
// to end it. lockEvery is how often the start asks: the kernel does not report when the lock becomes free.
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

// ErrEnding is the error while the kernel has not yet ended the killed agent that has locked the directory.
var ErrEnding = errors.New("the agent before still holds the directory")

// ending reports whether a process is a zombie, or will be killed as soon as its wait in the kernel ends.
func ending(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return false // the process may run in another namespace
	}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		signals, _ := strconv.ParseUint(string(value), 16, 64)
		switch string(key) {
		case "State":
			if value[0] == 'Z' {
				return true
			}
		case "SigPnd", "ShdPnd":
			if signals&(1<<(unix.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// describe reads from the lock file which process holds the lock.
func describe(f *os.File) (owner, pid string) {
	buf := make([]byte, 128)
	n, _ := f.ReadAt(buf, 0)
	fields := bytes.Fields(buf[:n])
	if len(fields) != 2 {
		return "another agent", ""
	}
	return fmt.Sprintf("agent %s (pid %s)", fields[1], fields[0]), string(fields[0])
}
