package store

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// drainFile exists while the agent is drained, since maintenance may outlast a restart.
const drainFile = "drained"

// DrainedSince returns since when the agent is drained; zero: it is not.
func (s *Store) DrainedSince() time.Time {
	info, err := os.Lstat(s.dir.path(drainFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// SetDrained stores whether the agent is drained, for later starts. Once it returns without an
// error, that is on disk. It may be called while Write runs.
func (s *Store) SetDrained(on bool) error {
	if on && !s.DrainedSince().IsZero() {
		return nil
	}
	var err error
	if on {
		err = writeFile(s.dir, drainFile, []byte("doyen drain on\n"))
	} else if err = os.Remove(s.dir.path(drainFile)); err == nil {
		err = s.dir.SyncDir()
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return wrap.Error(err, "keep drain %t", on)
}
