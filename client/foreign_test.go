package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The client connects to no socket in a directory that another user has made.
func TestTheSocketBelowTheTemporaryDirectoryMustBeOnesOwn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := temporarySocket()
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if foreign(dir, os.Getuid()) {
		t.Error("one's own directory is refused")
	}
	if os.Geteuid() != 0 {
		if !foreign(dir, os.Getuid()+1) {
			t.Error("another user's directory is taken")
		}
		return
	}
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Skipf("root may not change owners here: %v", err)
	}
	c := New(path)
	defer c.Close()
	_, err := c.Agent(t.Context())
	refused, ok := errors.AsType[*UnreachableError](err)
	if !ok || !strings.Contains(refused.Reason, "belongs to another user") || !strings.Contains(refused.Hint, "XDG_RUNTIME_DIR") {
		t.Errorf("got %#v", err)
	}
}
