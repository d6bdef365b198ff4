package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThePeerIsWhomTheKernelSays(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := net.Dial("unix", l.Addr().String()); err == nil {
			defer c.Close()
			_, _ = c.Read(make([]byte, 1))
		}
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := PeerOf(c)
	if err != nil || got.UID != uint32(os.Geteuid()) || got.GID != uint32(os.Getegid()) {
		t.Errorf("peer %+v, %v", got, err)
	}
}

func TestWhatIsAtTheSocketsPathDecides(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, err := Listen(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "in use by another process (pid ") {
		t.Errorf("a live one: %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	again, err := Listen(path)
	if err != nil {
		t.Fatalf("a dead one: %v", err)
	}
	again.Close()
	for name, build := range map[string]func() error{
		"file":    func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"folder":  func() error { return os.Mkdir(path, 0o700) },
		"symlink": func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
	} {
		if err := build(); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("a %s: %v", name, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the %s is gone", name)
		}
		os.Remove(path)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(path, "below")); err == nil {
		t.Error("a socket below a file")
	}
}

func TestADirectoryOfAnotherUserIsNoPlaceForTheSocket(t *testing.T) {
	dir, uid := t.TempDir(), os.Getuid()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if uid == 0 { // without root, this user owns the directory, and the other user does not exist
		if uid = 1000; errors.Join(os.Chown(dir, uid, -1), os.Lchown(link, uid, -1)) != nil {
			t.Skip("root may not change owners here, as in some containers; CI may")
		}
	}
	for _, path := range []string{dir, link} {
		if err := trusted(path, uid); err != nil {
			t.Errorf("one's own: %v", err)
		}
		if err := trusted(path, 0); err != nil {
			t.Errorf("as root: %v", err)
		}
		var refused *Error
		if err := trusted(path, uid+1); !errors.As(err, &refused) || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("another user's: %v", err)
		}
	}
	if err := trusted("/", uid+1); err != nil {
		t.Errorf("root's: %v", err)
	}
}

// A unit with UMask=0077 once made a directory that the agent's group could not enter.
func TestTheUmaskDoesNotKeepTheGroupOut(t *testing.T) {
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	base := t.TempDir()
	l, err := Listen(filepath.Join(base, "run", "doyen", "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]os.FileMode{"run": 0o755, "run/doyen": 0o750, "run/doyen/s": 0o660} {
		if info, err := os.Stat(filepath.Join(base, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want mode %04o", path, info.Mode(), err, want)
		}
	}
}
