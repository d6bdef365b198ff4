package settings

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/internal/act/hook"
	"golang.org/x/sys/unix"
)

// Judge returns the first of the Mistakes; nil: there are none.
func (c Config) Judge() error {
	return cmp.Or(c.Mistakes()...)
}

// Mistakes returns everything that is wrong with a configuration, resolved or not. That is what Resolve and
// Validate refuse, and what would make a start fail on this host as this user, or keep the agent
// from leading anything. Each is a *Error.
func (c Config) Mistakes() []error {
	var all []error
	blamed := map[string]bool{}
	add := func(err error) {
		bad, ok := errors.AsType[*Error](err)
		switch {
		case err == nil || ok && blamed[bad.Flag], ok && blamed["bind"] && slices.Contains([]string{"advertise", "key-file", "voters"}, bad.Flag):
			return // the same mistake was found before in another way
		case ok:
			blamed[bad.Flag] = true
		}
		all = append(all, err)
	}
	for _, step := range resolving {
		add(step(&c))
	}
	for _, check := range validating {
		add(check(c))
	}
	for _, check := range []func(Config) error{checkHere, checkPrograms, checkWritable, checkSharing} {
		add(check(c))
	}
	return all
}

// checkPrograms refuses commands whose program does not exist. If doyen act runs as another user, it accepts a
// program that only that user may find.
func checkPrograms(c Config) error {
	for _, h := range c.hookLines() {
		if err := hook.Missing(h.line); err != nil && !(c.actsApart() && errors.Is(err, fs.ErrPermission)) {
			return Errorf(h.flag, "correct the command, or install what it runs", "%v", err)
		}
	}
	return nil
}

// checkWritable refuses a data directory that this user can't write to, or can't create.
func checkWritable(c Config) error {
	at := Nearest(c.DataDir, os.Stat)
	if info, err := os.Stat(at); err == nil && !info.IsDir() {
		return Errorf("data-dir", "name another directory", "%s is not a directory", at)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return Errorf("data-dir", "change its owner or mode, name another directory, or check as the user that the agent runs as", "can't write to %s: %v", at, err)
	}
	return nil
}

// CheckFile refuses, for root, a file of the agent that another user could write or replace: that
// user could make the agent do anything as root. The error is a *Error about the flag.
func CheckFile(flag, path string) error {
	if err := hook.CheckPathAsRoot(path); err != nil {
		bad := Errorf(flag, "only root may be able to write to what an agent of root reads: change its owner or mode, move it, or run the agent as another user", "%v", err)
		bad.Cause = err
		return bad
	}
	return nil
}

// checkOwners checks the key file, the data directory and the sockets' directories. In place of one
// that does not exist yet, it checks the nearest existing directory above it.
func checkOwners(c Config) error {
	// CheckMode comes first, since the chmod in its hint also repairs what CheckFile would find.
	if err := StartError("data-dir", store.CheckMode(c.DataDir)); err != nil {
		return err
	}
	files := []struct{ flag, path string }{{"key-file", c.KeyFile}, {"data-dir", c.DataDir}}
	for _, s := range c.Sockets() {
		files = append(files, struct{ flag, path string }{s.Flag, filepath.Dir(s.Path)})
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if err := CheckFile(f.flag, Nearest(f.path, os.Lstat)); err != nil {
			return err
		}
	}
	return nil
}

// Nearest returns the path itself if look finds it. Otherwise it returns the nearest directory above that look finds.
func Nearest(path string, look func(string) (fs.FileInfo, error)) string {
	for path != filepath.Dir(path) {
		if _, err := look(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
