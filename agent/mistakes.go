package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/hook"
)

// Mistakes returns all that is wrong with a configuration that is not resolved yet: what
// Resolve and Validate refuse, and what would end a start on this host and by this user. Each
// is a *ConfigError.
func (c Config) Mistakes() []error {
	var all []error
	blamed := map[string]bool{}
	add := func(err error) {
		bad, ok := errors.AsType[*ConfigError](err)
		switch {
		case err == nil || ok && blamed[bad.Flag]:
			return // the same mistake, found in another way
		case ok:
			blamed[bad.Flag] = true
		}
		all = append(all, err)
	}
	for _, step := range resolving {
		add(step(&c))
	}
	for _, check := range validating {
		if bad := check(c); bad != nil && !(blamed["bind"] && slices.Contains([]string{"advertise", "key-file", "voters"}, bad.Flag)) {
			add(bad)
		}
	}
	for _, check := range []func(Config) *ConfigError{checkHere, checkPrograms, checkWritable, checkSharing} {
		if bad := check(c); bad != nil {
			add(bad)
		}
	}
	return all
}

// checkPrograms refuses hooks whose program does not exist.
func checkPrograms(c Config) *ConfigError {
	for _, h := range c.hookLines() {
		if err := hook.Missing(h.line); err != nil {
			return configError(h.flag, "correct the command, or install what it runs", "%v", err)
		}
	}
	return nil
}

// checkWritable refuses a data directory that this user can't write to, or can't make.
func checkWritable(c Config) *ConfigError {
	at := c.DataDir
	for at != filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
			break
		}
		at = filepath.Dir(at)
	}
	if info, err := os.Stat(at); err == nil && !info.IsDir() {
		return configError("data-dir", "name another directory", "%s is not a directory", at)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return configError("data-dir", "change its owner or mode, name another directory, or check as the user that the agent runs as", "can't write to %s: %v", at, err)
	}
	return nil
}
