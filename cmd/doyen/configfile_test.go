package main

import (
	"bytes"
	"errors"
	"os"
	"os/user"
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

// The agent mostly runs as the owner of its files. If they belonged to root, it could not start.
func TestACheckAsRootOfAnotherUsersFilesAsksForACheckAsThatUser(t *testing.T) {
	owner, err := user.LookupId("65534")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root, whose --check-config looks, and a user 65534; CI runs this as root")
	}
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 65534, 0)); err != nil {
		t.Fatal(err)
	}
	yaml := filepath.Join(theirs, "agent.yaml")
	if err := os.WriteFile(yaml, []byte("name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"doyen", "agent", "--check-config", "--name", "a", "--socket", filepath.Join(dir, "s")}
	for flag, args := range map[string][]string{
		"data-dir":  {"--data-dir", theirs},
		"config":    {"--data-dir", dir, "--config", yaml},
		"on-change": {"--data-dir", dir, "--on-change", filepath.Join(theirs, "hook")},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(base[:len(base):len(base)], args...), strings.NewReader(""), &stdout, &stderr)
		says := stderr.String()
		if code != exitConfig || !strings.HasPrefix(says, "doyen: --"+flag+": ") ||
			!strings.Contains(says, "this was checked as root; if the agent runs as user "+owner.Username+", check as that user: `runuser -u "+owner.Username+" -- doyen agent --check-config …`") {
			t.Errorf("--%s: %d, %s", flag, code, says)
		}
		if strings.Index(says, "chown root") < strings.Index(says, "runuser") {
			t.Errorf("--%s: %q gives the file to root before it asks whose agent it is", flag, says)
		}
	}
}
