package record

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how long a life waits for the lock if the kernel has not quite ended the former life yet.
// lockEvery is how often this life tries: the kernel does not report when a lock becomes free.
const (
	lockWait  = 500 * time.Millisecond
	lockEvery = 5 * time.Millisecond
)

// openFile opens the record at the path. It never creates a file, and follows no symbolic link.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) {
		return nil, errNoFile
	}
	return f, err
}

// ours returns an error if another user may have read or written the file, or if it can't be a record.
func ours(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, ok := statOf(info)
	switch {
	case !info.Mode().IsRegular():
		return errNoFile
	case !ok || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0:
		return accessError(info.Mode(), stat.Uid)
	case info.Size() >= maxSize:
		return errNoRecord
	}
	return nil
}

// lock locks the file for as long as it is open. The kernel releases the lock when the process has
// ended, in whatever way. Nothing else proves that the former life has ended: a life that is only
// silent may still act (K2).
func lock(f *os.File) error {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return nil
	case unix.EWOULDBLOCK, unix.EINTR:
		return errLocked
	default:
		return fmt.Errorf("lock it: %w", err)
	}
}

// has reports whether the path still names the open file.
func has(path string, f *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	this, err := f.Stat()
	return err == nil && os.SameFile(there, this)
}

func statOf(info os.FileInfo) (*syscall.Stat_t, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}

// draft creates and locks a file for a new record, beside the path. It replaces a file that a process left
// there when it died.
func draft(path string) (_ *os.File, err error) {
	name := path + ".new"
	_ = os.Remove(name) // if the removal fails, the file can't be created below
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = f.Chmod(0o600); err == nil { // independent of the umask
		err = lock(f)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(name), f.Close())
	}
	return f, nil
}
