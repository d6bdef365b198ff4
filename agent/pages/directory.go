package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// lockFile is in the directory of the pages. No election can have this name.
const lockFile = ".lock"

// take makes the directory, for the agent's user and group, and locks it. If two agents had their
// pages in one directory, programs would mistake the pages of one agent for those of the other.
func take(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w: move away what is there", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != uint32(os.Geteuid()) {
		return nil, errors.Join(fmt.Errorf("%s belongs to user %d: move it away, or choose another directory with --socket", dir, owner.Uid), f.Close())
	}
	if err := f.Chmod(0o750); err != nil { // Mkdir's mode depends on the umask
		return nil, errors.Join(fmt.Errorf("protect the directory: %w", err), f.Close())
	}
	lock, err := hold(dir)
	return lock, errors.Join(err, f.Close())
}

// hold locks the directory by a lock file that only the agent's user can open. If the directory itself
// were locked, any user that may read it could take the lock before the next agent starts.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the lock: %w", err), f.Close())
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another agent keeps its lease pages in %s: give each agent a socket with a different name, or in a different directory", dir), f.Close())
	}
	return f, nil
}

// wipe ends every lease that a page in the directory may show, except on pages for which stays returns true.
func wipe(dir string, stays func(name string) bool) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs error
	for _, f := range found {
		if !f.IsDir() && f.Name() != lockFile && !stays(f.Name()) {
			errs = errors.Join(errs, leasepage.Wipe(filepath.Join(dir, f.Name())))
		}
	}
	return errs
}
