package client_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/client"
)

func TestAnUnreachableAgentSaysWhyAndWhatToDo(t *testing.T) {
	tests := []struct {
		name         string
		make         func(t *testing.T, path string)
		reason, hint string
	}{
		{"no socket", func(*testing.T, string) {}, "no socket exists at", "--socket or DOYEN_SOCKET"},
		{"dead socket", deadSocket, "no agent listens at", "its keeper or service starts it again"},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket", "DOYEN_SOCKET"},
		{"no permission", func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root is refused nothing")
			}
			deadSocket(t, path)
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
		}, "permission denied", "as root"},
		{"closes at once", func(t *testing.T, path string) { speak(t, path, "") }, "closed the connection", "see `systemctl status doyen` and its log"},
		{"something else", func(t *testing.T, path string) { speak(t, path, "220 ESMTP ready\r\n") },
			"does not answer like an agent", "DOYEN_SOCKET"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // some wait for the agent's next process
			path := filepath.Join(shortDir(t), "s")
			test.make(t, path)
			c := client.New(path)
			defer c.Close()
			_, err := c.Agent(t.Context())
			checkUnreachable(t, err, test.reason, test.hint)
		})
	}
	t.Run("path too long", func(t *testing.T) {
		_, err := client.New("/tmp/" + strings.Repeat("x", 120)).Agent(t.Context())
		checkUnreachable(t, err, "has 125 bytes, the system allows 107", "shorter path")
	})
	t.Run("no path", func(t *testing.T) {
		_, err := client.New("").Agent(t.Context())
		checkUnreachable(t, err, "no socket is given", "DOYEN_SOCKET")
	})
}

func checkUnreachable(t *testing.T, err error, reason, hint string) {
	t.Helper()
	got, ok := errors.AsType[*client.UnreachableError](err)
	if !ok {
		t.Fatalf("got %#v, want an UnreachableError", err)
	}
	if !strings.Contains(got.Reason, reason) || got.Error() != got.Reason {
		t.Errorf("reason %q, want %q in it", got.Reason, reason)
	}
	if !strings.Contains(got.Hint, hint) {
		t.Errorf("hint %q, want %q in it", got.Hint, hint)
	}
}

// deadSocket leaves a socket that nobody listens at.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

// speak answers the first bytes on each connection with the greeting, and closes the connection.
func speak(t *testing.T, path, greeting string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 512))
			io.WriteString(conn, greeting)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
}

func TestDefaultSocket(t *testing.T) {
	if os.Geteuid() == 0 {
		if got := client.DefaultSocket(); got != "/run/doyen/doyen.sock" {
			t.Fatalf("root: %s", got)
		}
		return
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	if got := client.DefaultSocket(); got != "/run/user/7/doyen/doyen.sock" {
		t.Errorf("XDG_RUNTIME_DIR set: %s", got)
	}
	for _, unusable := range []string{"", "relative"} {
		t.Setenv("XDG_RUNTIME_DIR", unusable)
		if got := client.DefaultSocket(); !strings.HasPrefix(got, os.TempDir()) || !strings.HasSuffix(got, "/doyen.sock") {
			t.Errorf("XDG_RUNTIME_DIR=%q: %s", unusable, got)
		}
	}
}
