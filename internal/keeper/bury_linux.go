package keeper

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// bury ends a lineage that has no next life. It first destroys the record, so that no life can continue from it
// (K6). Then it removes the lease pages, even if the record is missing, unreadable or could not be destroyed.
// If another process uses the data directory, bury removes nothing: that process may lead. It does not undo
// what hooks have set up: doyen act does.
func bury(of Given, peer election.PeerID) error {
	lock, err := hold(of.Lock)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("another process uses the data directory: lease pages are left to it")
	}
	if err == nil {
		defer unix.Close(lock)
	}
	return errors.Join(destroy(of.Record, peer), wipe(of.Pages))
}

// hold locks the data directory until the descriptor is closed. After any error but EWOULDBLOCK, no other
// process can be using the directory.
func hold(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
	}
	return fd, err
}

func destroy(path string, peer election.PeerID) error {
	if path == "" {
		return nil
	}
	_, err := record.End(record.Config{Path: path, Peer: peer})
	return wrap.Error(err, "destroy record")
}

func wipe(dir string) error {
	entries, err := os.ReadDir(dir) // if dir is "", the error says that it does not exist
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, leasepage.Wipe(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
