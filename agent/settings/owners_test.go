package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/act/health"
)

// A user who can write what an agent of root uses is as good as root. Examples are on-change in the configuration,
// the identity in the data directory, and the socket.
func TestAnAgentOfRootGoesByNothingThatOthersCanWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose agent looks; CI runs this as root")
	}
	build := func(mode os.FileMode, uid int) string {
		dir := filepath.Join(t.TempDir(), "d")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	key := func(mode os.FileMode, uid int) string {
		file := filepath.Join(t.TempDir(), "key")
		if err := errors.Join(os.WriteFile(file, []byte(strings.Repeat("A", 43)+"="), 0o600), os.Chmod(file, mode), os.Chown(file, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	also := ""
	for name, c := range map[string]struct {
		change func(*settings.Config)
		says   string
	}{
		"all of root":                         {func(c *settings.Config) {}, ""},
		"yet to be made":                      {func(c *settings.Config) { c.DataDir = filepath.Join(build(0o700, 0), "x", "y") }, ""},
		"the data directory of another":       {func(c *settings.Config) { c.DataDir = build(0o700, 1000) }, "--data-dir: "},
		"to be made in another's":             {func(c *settings.Config) { c.DataDir = filepath.Join(build(0o755, 1000), "x") }, "--data-dir: "},
		"a data directory that all may write": {func(c *settings.Config) { c.DataDir = build(0o777, 0); also = "chmod 700 " + c.DataDir }, "--data-dir: "},
		"the socket's directory":              {func(c *settings.Config) { c.Socket = filepath.Join(build(0o755, 1000), "s") }, "--socket: "},
		"the socket's, that all may write":    {func(c *settings.Config) { c.Socket = filepath.Join(build(0o777, 0), "s") }, "--socket: "},
		"the socket's, with a sticky bit":     {func(c *settings.Config) { c.Socket = filepath.Join(build(0o777|os.ModeSticky, 0), "s") }, ""},
		"a key file of another":               {func(c *settings.Config) { c.KeyFile = key(0o600, 1000) }, "--key-file: "},
	} {
		config := settings.Default()
		config.Name, config.DataDir, config.Socket, config.KeyFile = "a", build(0o700, 0), filepath.Join(build(0o750, 0), "s"), key(0o600, 0)
		also = ""
		c.change(&config)
		resolved, err := config.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		err = resolved.Validate()
		if _, bad := errors.AsType[*settings.Error](err); bad != (c.says != "") || bad && (!strings.HasPrefix(err.Error(), c.says) || !strings.Contains(err.Error(), also)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if err := settings.CheckFile("config", key(0o666, 65534)); err == nil || !strings.HasPrefix(err.Error(), "--config: ") {
		t.Errorf("a configuration that anybody may write: %v", err)
	}
}

func TestAHookThatOthersCanWriteStopsTheStartOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: only root's hooks are checked")
	}
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*settings.Config){
		"on-change": func(c *settings.Config) { c.OnChange = path + " all" },
		"elections.payments.on-change": func(c *settings.Config) {
			c.Elections = map[string]settings.ElectionConfig{"payments": {OnChange: "/bin/sh " + path}}
		},
	} {
		_, err := resolved(t, change)
		bad, ok := errors.AsType[*settings.Error](err)
		if !ok || bad.Flag != flag || !strings.Contains(bad.Problem, "chmod go-w") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Nobody can check what a line of the shell runs, so an agent that runs as root must not have one.
func TestALineOfTheShellStopsTheStartOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: only root's commands are checked")
	}
	const line = "/bin/true; /bin/true"
	for flag, change := range map[string]func(*settings.Config){
		"on-change": func(c *settings.Config) { c.OnChange = line },
		"check":     func(c *settings.Config) { c.Check = line },
		"elections.payments.on-change": func(c *settings.Config) {
			c.Elections = map[string]settings.ElectionConfig{"payments": {OnChange: line}}
		},
		"elections.payments.check": func(c *settings.Config) {
			c.Elections = map[string]settings.ElectionConfig{"payments": {Check: health.Check{Command: line}}}
		},
	} {
		c, err := resolved(t, change)
		bad, ok := errors.AsType[*settings.Error](err)
		if !ok || bad.Flag != flag || !strings.Contains(err.Error(), "nobody can check what such a line runs") || !strings.Contains(err.Error(), "a script that holds this line") {
			t.Errorf("%s: %v", flag, err)
		}
		if all := c.Mistakes(); len(all) != 1 || all[0].Error() != err.Error() {
			t.Errorf("%s: all mistakes are %v", flag, all)
		}
		c.Act, c.ActUser = false, "65534"
		if err := c.Validate(); err != nil {
			t.Errorf("%s, run by another user: %v", flag, err)
		}
		if err := c.ValidateActing(); err == nil || err.Error() != bad.Error() {
			t.Errorf("%s, although root is the one that runs it: %v", flag, err)
		}
	}
}
