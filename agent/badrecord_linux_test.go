package agent_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever is at the record's path, the agent starts, leads and votes. One line of its log reports why the record
// was not used, or why no record is kept.
func TestAnAgentStartsWhateverItsRecordIs(t *testing.T) {
	t.Parallel()
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for name, bad := range map[string]struct {
		place func(path string) error
		want  string
		kept  bool // the new lineage has a record
	}{
		"garbage":              {write("garbage"), "it is not a record", true},
		"empty":                {write(""), "its lineage was ended", true},
		"one of 0.3.0":         {write("doyenrec\x01\x00\x00\x00\x00\x04\x00\x00"), "its format is 1, and this agent has 2", true},
		"zeros":                {zeros, "it is not a record", true},
		"a pipe":               {func(p string) error { return unix.Mkfifo(p, 0o600) }, "it is not a regular file", true},
		"a link":               {func(p string) error { return os.Symlink("/dev/zero", p) }, "it is not a regular file", true},
		"a directory":          {func(p string) error { return os.Mkdir(p, 0o700) }, "no record is kept", false},
		"open to others":       {func(p string) error { return os.WriteFile(p, nil, 0o666) }, "others than this agent's user may use it", true},
		"locked by a stranger": {locked(t), "another process has locked it", false},
		"a writable directory": {func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, "others than this agent's user may use it (mode 0777", false},
		"no directory any more": {func(p string) error {
			return errors.Join(os.Remove(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), nil, 0o600))
		}, "not a directory", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lone(t)
			c.RecordDir = inMemory(t)
			if err := bad.place(filepath.Join(c.RecordDir, c.Name+".record")); err != nil {
				t.Fatal(err)
			}
			client, out, stop := start(t, c)
			follow(t, client, leads)
			out.await(t, "why", func(log string) bool { return strings.Contains(log, bad.want) })
			if n := strings.Count(out.String(), bad.want); n != 1 {
				t.Errorf("said %d times:\n%s", n, out)
			}
			status, body := get(t, client, "/v1/agent")
			if status != http.StatusOK || strings.Contains(body, `"no_record"`) == bad.kept {
				t.Errorf("%d %s", status, body)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func zeros(path string) error { return os.WriteFile(path, make([]byte, 616<<10), 0o600) }

// locked makes a record that another process holds.
func locked(t *testing.T) func(path string) error {
	return func(path string) error {
		if err := zeros(path); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { f.Close() })
		return unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
}
