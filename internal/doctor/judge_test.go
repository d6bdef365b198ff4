package doctor

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/doyen-election/doyen/agent/settings"
)

// Before the agent has started, root's doctor judges as the unit's user would: that user's key is right,
// root's is wrong.
func TestRootJudgesAsTheUserOfTheUnit(t *testing.T) {
	u, err := user.Lookup("nobody")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root and a user nobody, which CI has")
	}
	uid, _ := strconv.Atoi(u.Uid)
	dir, err := os.MkdirTemp("/var/lib", "doctor") // other users can't change the directories above it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := settings.Default()
	c.Name, c.DataDir, c.KeyFile, c.Socket = "a", filepath.Join(dir, "data"), filepath.Join(dir, "key"), "/run/doctor-test/s"
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(c.DataDir, 0o700), os.Chown(c.DataDir, uid, -1),
		os.WriteFile(c.KeyFile, []byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600), os.Chown(c.KeyFile, uid, -1)); err != nil {
		t.Fatal(err)
	}
	unit := func(out string, err error) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return out, err }
	}
	flags := func(show func(context.Context, string) (string, error)) (all []string) {
		for _, err := range mistakesOfUnit(t.Context(), c, show) {
			bad, _ := errors.AsType[*settings.Error](err)
			all = append(all, bad.Flag)
		}
		return all
	}
	of := unit("LoadState=loaded\nUser=nobody\n", nil)
	want := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: wrong are %v, want %v", when, got, want)
		}
	}
	want("no unit", flags(unit("", errors.New("no systemd"))), "key-file")
	want("a unit of root", flags(unit("User=\n", nil)), "key-file")
	want("its files", flags(of))
	if err := os.Chown(c.KeyFile, 0, 0); err != nil {
		t.Fatal(err)
	}
	want("a key of root", flags(of), "key-file")
	if os.Geteuid() != 0 {
		t.Error("this process is not root's any more")
	}
}
