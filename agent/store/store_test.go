package store_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

func peerID(k ed25519.PublicKey) (election.PeerID, error) {
	return election.PeerID("peer-" + hex.EncodeToString(k[:8])), nil
}

func open(t *testing.T, dir string) (*store.Store, election.State, error) {
	t.Helper()
	return store.Open(store.Config{Dir: dir, Name: "a", PeerID: peerID})
}

// made returns a directory that has an identity and one promise, and the state with that promise.
func made(t *testing.T) (string, election.State) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s, state, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	state.Grants = map[election.Name]election.Grant{
		"default": {Term: 7, Holder: election.Holder{Peer: state.Peer, Lineage: 9}, Lease: time.Second},
	}
	if err := s.Write(election.Persist{State: &state}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, state
}

func TestPromisesAndIdentitySurviveARestart(t *testing.T) {
	dir, want := made(t)
	s, got, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v, want %+v", got, want)
	}
	if s.Peer() != want.Peer {
		t.Errorf("peer %s, want %s", s.Peer(), want.Peer)
	}
	for file, mode := range map[string]os.FileMode{"": 0o700, "identity.key": 0o600, "state": 0o600} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%q has mode %o, want %o", file, info.Mode().Perm(), mode)
		}
	}
}

// A crash during a write leaves a part of the new state under the temporary name. The state on record is the last
// one whose write was acknowledged.
func TestAnInterruptedWriteLeavesTheOldState(t *testing.T) {
	dir, want := made(t)
	if err := os.WriteFile(filepath.Join(dir, "state.new"), []byte("doyen-state\nhalf"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, got, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v, want %+v", got, want)
	}
	if err := s.Write(election.Persist{State: &want}); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

func TestAStartCutOffBeforeTheIdentityStartsAfresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.Remove(filepath.Join(dir, "identity.key")); err != nil {
		t.Fatal(err)
	}
	s, _, err = open(t, dir)
	if err != nil {
		t.Fatalf("a state without promises and identity must be replaced: %v", err)
	}
	s.Close()
}

// The hint must not be to move the state away: the next start would then refuse the identity without a state.
func TestAStateThatIsLostBesideAnIdentityNamesTheWayBack(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"foreign":     func(p string) error { return os.WriteFile(p, []byte("PNG and so on"), 0o600) },
		"damaged":     func(p string) error { return os.Truncate(p, 60) },
		"a directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
	} {
		dir, _ := made(t)
		if err := damage(filepath.Join(dir, "state")); err != nil {
			t.Fatal(err)
		}
		_, _, err := open(t, dir)
		if err == nil || !strings.Contains(err.Error(), `"A lost data directory"`) || strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, "identity.key")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(t, dir); name != "damaged" && (err == nil || !strings.Contains(err.Error(), "move it away")) {
			t.Errorf("%s, without an identity: %v", name, err)
		}
	}
}

func TestWhatIsWrongIsRefusedAndLeftAlone(t *testing.T) {
	flip := func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)-1] ^= 1
		return os.WriteFile(path, data, 0o600)
	}
	cases := []struct {
		name   string
		damage func(dir string) error
		want   string
	}{
		{"state lost", func(d string) error { return os.Remove(d + "/state") }, "promises made under that identity are lost"},
		{"identity lost", func(d string) error { return os.Remove(d + "/identity.key") }, "identity.key: is missing"},
		{"state damaged", func(d string) error { return flip(d + "/state") }, "checksum"},
		{"state empty", func(d string) error { return os.Truncate(d+"/state", 0) }, "cut short"},
		{"state cut", func(d string) error { return os.Truncate(d+"/state", 60) }, "cut short"},
		{"state foreign", func(d string) error { return os.WriteFile(d+"/state", []byte("PNG and so on"), 0o600) }, "not a Doyen state"},
		{"state newer", func(d string) error { return os.WriteFile(d+"/state", newer(), 0o600) }, "newer"},
		{"state a directory", func(d string) error {
			return errors.Join(os.Remove(d+"/state"), os.Mkdir(d+"/state", 0o700))
		}, "not a regular file"},
		{"identity of another", func(d string) error {
			other, _ := made(t)
			return os.Rename(other+"/identity.key", d+"/identity.key")
		}, "the identity next to it is"},
		{"identity damaged", func(d string) error { return os.WriteFile(d+"/identity.key", []byte("?"), 0o600) }, "not an Ed25519"},
		{"identity readable by others", func(d string) error { return os.Chmod(d+"/identity.key", 0o640) }, "chmod 600"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := made(t)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, dir)
			_, _, err := open(t, dir)
			var refused *store.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want a refusal with %q", err, c.want)
			}
			if after := snapshot(t, dir); !reflect.DeepEqual(before, after) {
				t.Errorf("files changed: %v, were %v", after, before)
			}
		})
	}
}

// snapshot returns the contents of a directory's files, without the lock file.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, e.Name())) // for a directory the data is empty
		files[e.Name()] = string(data)
	}
	return files
}

func TestALockedDirectoryNamesItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = open(t, dir)
	if err == nil || !strings.Contains(err.Error(), "in use by agent a (pid ") {
		t.Errorf("got %v, want the owner's name and pid", err)
	}
	s.Close()
	s, _, err = open(t, dir)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	s.Close()
}

// With /dev/full at the temporary name, writes fail as on a full disk.
func TestAFullDiskIsReportedAndRecoveredFrom(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("no /dev/full on this system: %v", err)
	}
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	temp := filepath.Join(dir, "state.new")
	if err := os.Symlink("/dev/full", temp); err != nil {
		t.Fatal(err)
	}
	next := state.Clone()
	next.Grants["default"] = election.Grant{Term: 8, Holder: election.Holder{Peer: state.Peer, Lineage: 9}, Lease: time.Second}
	if err := s.Write(election.Persist{State: &next}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
	if err := os.Remove(temp); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(election.Persist{State: &next}); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}

func TestADirectoryInThePlaceOfTheTemporaryFileFailsTheWrite(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Mkdir(filepath.Join(dir, "state.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(election.Persist{State: &state}); err == nil {
		t.Fatal("wrote through a directory")
	}
}

// The promises are in the directory that was moved away. Another agent may have locked the new directory.
func TestADirectoryReplacedWhileItIsInUseIsNotWrittenTo(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(election.Persist{State: &state}); err == nil || !strings.Contains(err.Error(), "replaced while the agent ran") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("it wrote %v", entries)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".old", dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(election.Persist{State: &state}); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

func TestADirectoryThatOthersMayChangeIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		dir, _ := made(t)
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(t, dir); err == nil || !strings.Contains(err.Error(), "can be changed by others") || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestAStateOfAnotherIdentityIsNotWritten(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	state.Peer = "somebody"
	if err := s.Write(election.Persist{State: &state}); err == nil {
		t.Fatal("wrote a foreign state")
	}
}

func TestAFileInThePlaceOfTheDirectoryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, path); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatalf("got %v", err)
	}
}

// On a read-only file system the first start is refused, and the error names the reason.
func TestAReadOnlyDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "ro,mode=700", "none", dir).CombinedOutput(); err != nil {
			t.Skipf("root ignores permissions, and can't mount here: %s", out)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, _, err := open(t, dir)
	var refused *store.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "can't be used") {
		t.Fatalf("got %v", err)
	}
}
