package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAConfigurationThatOthersCanWriteIsRefusedAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose agent looks; CI runs this as root")
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	for _, c := range []struct {
		mode os.FileMode
		uid  int
		ok   bool
	}{{0o644, 0, true}, {0o666, 0, false}, {0o644, 65534, false}} {
		if err := errors.Join(os.WriteFile(path, []byte("on-change: /bin/true"), 0o600), os.Chmod(path, c.mode), os.Chown(path, c.uid, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := loadFile(path); (err == nil) != c.ok || err != nil && !strings.HasPrefix(err.Error(), "--config: ") {
			t.Errorf("mode %04o, user %d: %v", c.mode, c.uid, err)
		}
	}
}
