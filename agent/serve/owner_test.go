package serve

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuthorization(t *testing.T) {
	groups := func(uid uint32) ([]string, error) {
		if uid == 1002 {
			return []string{"5", "500"}, nil
		}
		return nil, errors.New("unknown user")
	}
	owner := Owner{UID: 1000, GID: 500, Groups: groups}
	for _, c := range []struct {
		name string
		peer *peer
		may  bool
	}{
		{"root", &peer{uid: 0, gid: 0}, true},
		{"the agent's user", &peer{uid: 1000, gid: 1}, true},
		{"its group", &peer{uid: 1001, gid: 500}, true},
		{"its group, by membership", &peer{uid: 1002, gid: 5}, true},
		{"its group, as the kernel says", &peer{uid: 1003, gid: 5, groups: []uint32{7, 500}, allGroups: true}, true},
		{"its group, by membership, but the process has it not", &peer{uid: 1002, gid: 5, groups: []uint32{5}, allGroups: true}, false},
		{"its group, by membership, where the kernel knows not all", &peer{uid: 1002, gid: 5, groups: []uint32{5}}, true},
		{"anybody else", &peer{uid: 1003, gid: 5}, false},
		{"nobody known", nil, false},
	} {
		ctx := context.Background()
		if c.peer != nil {
			ctx = context.WithValue(ctx, peerKey{}, *c.peer)
		}
		err := owner.authorize(ctx)
		if (err == nil) != c.may {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.peer != nil && err != nil && !strings.Contains(err.Error(), "group 500") {
			t.Errorf("%q does not say which group may", err)
		}
	}
}

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
	c, err := limit(l, 1).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, ok := withPeer(context.Background(), c).Value(peerKey{}).(peer)
	if !ok || got.uid != uint32(os.Geteuid()) || got.gid != uint32(os.Getegid()) {
		t.Errorf("peer %+v, %v", got, ok)
	}
}

func TestWhatIsAtTheSocketsPathDecides(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var refused *SocketError
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
	for name, make_ := range map[string]func() error{
		"file":    func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"folder":  func() error { return os.Mkdir(path, 0o700) },
		"symlink": func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
	} {
		if err := make_(); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "no socket") {
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
	if uid == 0 { // else the directory is this user's, and the other one is made up
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
		var refused *SocketError
		if err := trusted(path, uid+1); !errors.As(err, &refused) || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("another user's: %v", err)
		}
	}
	if err := trusted("/", uid+1); err != nil {
		t.Errorf("root's: %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 1)
	accepted := make(chan net.Conn, 2)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("two at once")
	default:
	}
	first.Close()
	first.Close() // frees its place once
	(<-accepted).Close()
	l.Close()
	<-ended
}
