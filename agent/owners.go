package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/agent/store"
)

// CheckFile refuses, as root, a file of the agent that another user could write or replace:
// that user could make root's agent do anything. The error is a *ConfigError about the flag.
func CheckFile(flag, path string) error {
	if err := hook.CheckPathAsRoot(path); err != nil {
		bad := configError(flag, "only root may be able to write to what an agent of root reads: change its owner or mode, move it, or run the agent as another user", "%v", err)
		bad.Cause = err
		return bad
	}
	return nil
}

// checkOwners checks the key file, the data directory and the sockets' directories. If one does
// not exist yet, it checks the nearest directory above it.
func checkOwners(c Config) *ConfigError {
	// First: the chmod in its hint also repairs what the checks below would find.
	if bad, ok := errors.AsType[*ConfigError](startError("data-dir", store.CheckMode(c.DataDir))); ok {
		return bad
	}
	files := []struct{ flag, path string }{{"key-file", c.KeyFile}, {"data-dir", c.DataDir}}
	for _, s := range c.Sockets() {
		files = append(files, struct{ flag, path string }{s.Flag, filepath.Dir(s.Path)})
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		path := f.path
		for path != filepath.Dir(path) {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			path = filepath.Dir(path)
		}
		if bad, ok := errors.AsType[*ConfigError](CheckFile(f.flag, path)); ok {
			return bad
		}
	}
	return nil
}
