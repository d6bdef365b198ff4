package serve_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// as is a user of this host, whose rights a test uses to connect.
type as struct {
	uid, gid uint32
	groups   []int
}

// dial connects as that user.
func (u as) dial(path string) (net.Conn, error) {
	conns, err := u.dialMany(path, 1)
	if err != nil {
		return nil, err
	}
	return conns[0], nil
}

// dialMany connects n times. The thread that has the user's rights ends afterwards.
func (u as) dialMany(path string, n int) (conns []net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if err = u.become(); err != nil {
			return
		}
		for range n {
			var c net.Conn
			if c, err = connect(path); err != nil {
				return
			}
			conns = append(conns, c)
		}
	}()
	<-done
	return conns, err
}

// become gives this thread the user's rights, and no others.
func (u as) become() error {
	if err := unix.Setgroups(u.groups); err != nil {
		return err
	}
	for _, set := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETRESGID, u.gid}, {unix.SYS_SETRESUID, u.uid}} {
		if _, _, errno := unix.RawSyscall(set.call, uintptr(set.id), uintptr(set.id), uintptr(set.id)); errno != 0 {
			return errno
		}
	}
	return nil
}

// connect connects on the calling thread. Package net might use another thread.
func connect(path string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// as returns the agent as that user's program sees it. Only root can take another user's rights.
func (a *agent) as(t *testing.T, u as) *agent {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as another user; CI runs this as root")
	}
	for path, mode := range map[string]os.FileMode{a.path: 0o666, filepath.Dir(a.path): 0o755, filepath.Dir(filepath.Dir(a.path)): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return u.dial(a.path) }}
	t.Cleanup(transport.CloseIdleConnections)
	other := &agent{path: a.path, client: &http.Client{Transport: transport, Timeout: patience}}
	return other
}
