package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/doyen-election/doyen/agent/settings"
)

func keygen(i *invocation) error {
	key := settings.NewKey()
	path := i.String("out")
	if i.IsSet("out") && path == "" {
		return usage("name a file, or omit --out to write the key to stdout", "keygen: --out is empty")
	}
	field, value, text := "key", key, key+"\n"
	if i.IsSet("out") {
		if err := newFile(path, []byte(key+"\n"), "write the key", "it may be the cluster's key: choose another name, or move it away first", true); err != nil {
			return err
		}
		field, value, text = "key_file", path, fmt.Sprintf("wrote %s: copy it to every host\n", path)
	}
	return i.show(map[string]string{field: value}, text)
}

// newFile makes a new file that only its owner can read. It never overwrites a file: it may hold the key of the
// cluster. With given, root's file gets the owner of the directory. That owner could replace the file anyway,
// and is most probably the agent's user.
func newFile(path string, data []byte, what, taken string, given bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &failure{code: exitFailed, what: what, err: errors.New(path + " exists already"), hint: taken}
	}
	if err != nil {
		return &failure{code: exitFailed, what: what, err: err, hint: "name a file in a directory that exists and that you may write to"}
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if info, failed := os.Stat(filepath.Dir(path)); given && os.Geteuid() == 0 && errors.Join(err, failed) == nil {
		if owner, is := info.Sys().(*syscall.Stat_t); is {
			err = f.Chown(int(owner.Uid), int(owner.Gid))
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
