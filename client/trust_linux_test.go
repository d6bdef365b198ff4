package client_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/client"
)

// listenAs answers {} at the path, as that user.
func listenAs(t *testing.T, uid int, path string) {
	t.Helper()
	var l net.Listener
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		fd, failed := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		if err = errors.Join(failed, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 8)); err == nil {
			l, err = net.FileListener(f)
		}
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"name":"a"}`)) })}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// Anybody can listen at a path in /tmp, where root may look for its agent.
func TestRootTrustsNoStrangerInASharedDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose client looks; CI runs this as root")
	}
	for name, c := range map[string]struct {
		mode       os.FileMode
		owner, uid int
		trusted    bool
	}{
		"root's own":                        {0o777 | os.ModeSticky, 0, 0, true},
		"a stranger":                        {0o777 | os.ModeSticky, 0, 65534, false},
		"a stranger in a group's directory": {0o775, 1000, 65534, false},
		"the directory's owner":             {0o775, 65534, 65534, true},
		"whoever was let in":                {0o755, 65534, 65534, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "doyen")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			path := filepath.Join(dir, "s")
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			listenAs(t, c.uid, path)
			if err := errors.Join(os.Chown(dir, c.owner, 0), os.Chmod(dir, c.mode)); err != nil {
				t.Fatal(err)
			}
			agent := client.New(path)
			defer agent.Close()
			_, err = agent.Agent(t.Context())
			bad, refused := errors.AsType[*client.UnreachableError](err)
			switch {
			case c.trusted && err != nil:
				t.Errorf("refused: %v", err)
			case !c.trusted && (!refused || !strings.Contains(bad.Reason, "may not be an agent: user 65534 answers there") || bad.Hint == ""):
				t.Errorf("got %v, want that somebody else answers", err)
			}
		})
	}
}
