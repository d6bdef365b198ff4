package settings_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent/settings"
)

// Kubernetes provides a secret as a file of root, which a group of the agent's user can read.
func TestRootMayHandTheKeyToAGroupOfTheAgent(t *testing.T) {
	if path := os.Getenv("DOYEN_TEST_KEY"); path != "" { // this run plays the agent's user, see below
		if _, bad := settings.ReadKeys(path); bad != nil {
			t.Fatal(bad)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to read as another user; CI runs this as root")
	}
	dir, err := os.MkdirTemp("", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "key")
	user := syscall.Credential{Uid: 4000, Gid: 4001, Groups: []uint32{4002}}
	for _, c := range []struct {
		mode       os.FileMode
		owner, gid int
		says       string
	}{
		{0o440, 0, 4001, ""},
		{0o640, 0, 4001, ""},
		{0o640, 0, 4002, ""},
		{0o600, 4000, 4001, ""},
		{0o640, 0, 4003, "can be read by others (mode 0640)"}, // the agent is not in the group, and can't read it at all
		{0o640, 4000, 4001, "can be read by others (mode 0640)"},
		{0o640, 4005, 4001, "can be read by others (mode 0640)"},
		{0o660, 0, 4001, "can be read by others (mode 0660)"},
		{0o444, 0, 4001, "can be read by others (mode 0444)"},
	} {
		if err := errors.Join(os.WriteFile(path, []byte("bVb2DkIvTQxMPYcdEhWxVQvQ4PMa0jNfC7kS3uJrWQk=\n"), 0o600), os.Chown(path, c.owner, c.gid), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Dir, cmd.Env = "/", append(os.Environ(), "DOYEN_TEST_KEY="+path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &user, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (c.says == "") || !strings.Contains(string(out), c.says) {
			t.Errorf("mode %04o of %d:%d: %v, %s, want %q", c.mode, c.owner, c.gid, err, out, c.says)
		}
	}
	if _, bad := settings.ReadKeys(path); bad == nil {
		t.Error("root's agent needs no group to read its key")
	}
}
