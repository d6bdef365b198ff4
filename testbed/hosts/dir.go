package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	dirPrefix = "doyen-testbed-"
	// maxDir is how long a directory's path may be, so that a socket's name fits after it.
	// Some systems allow only 103 bytes for the path of a socket.
	maxDir = 103 - len("/omicron2/sock")
)

// Dir is a temporary directory that does not outlive its owner for long. The owner holds a
// lock on a file in it. When the owner has died, the lock is free, and the next NewDir removes
// the directory.
type Dir struct {
	Path string
	lock *os.File
}

// NewDir makes a directory, for this user only, in the system's temporary directory. It
// removes directories that killed testbeds of this user left there.
func NewDir() (*Dir, error) {
	parent := os.TempDir()
	if len(parent)+len("/"+dirPrefix)+10 > maxDir {
		parent = "/tmp"
	}
	return newDirIn(parent)
}

// memory is a directory whose files are in memory, on most systems.
const memory = "/dev/shm"

func newDirIn(parent string) (*Dir, error) {
	sweep(parent)
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for the agents, in TMPDIR if that is set: %w", err)
	}
	d := &Dir{Path: path}
	if err := d.hold(); err != nil {
		os.RemoveAll(path)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return d, nil
}

// hold locks the directory. The lock file gets its name only after it was locked: so no other
// testbed finds it unlocked while the owner lives.
func (d *Dir) hold() error {
	unnamed := filepath.Join(d.Path, "lock.new")
	lock, err := os.OpenFile(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(unnamed, filepath.Join(d.Path, "lock"))
	}
	if err != nil {
		lock.Close()
		return err
	}
	d.lock = lock
	return nil
}

func (d *Dir) Close() error {
	err := os.RemoveAll(d.Path)
	d.lock.Close()
	return wrap.Error(err, "remove the agents' files")
}

// sweep removes, as far as it can, the directories of this user that no testbed holds.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if strings.HasPrefix(e.Name(), dirPrefix) && ours(path) && abandoned(path) {
			os.RemoveAll(path)
		}
	}
}

// ours reports whether path is a directory of this user, and not a link to one.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

func abandoned(path string) bool {
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false // no lock: the directory is being made, or is not a testbed's
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
